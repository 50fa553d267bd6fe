"""Apps to read and to run: `bank` first, then `shop`. Nothing in `styx` imports them."""
