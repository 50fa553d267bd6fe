"""What proves the product and is not part of it: the simulator, fault runs on real processes, the outside judge."""
