"""Programs that prove the product and are not part of it: the simulator, fault runs on real processes, the judge."""
