"""The watchdog: names what holds up an engine, and ends functions that never end."""
