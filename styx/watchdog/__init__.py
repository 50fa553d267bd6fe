"""The watchdog: names the code that holds up an engine, and interrupts functions that never end."""
