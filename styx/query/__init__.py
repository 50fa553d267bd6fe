"""Looking at stored state over a snapshot, from outside. No function of an app runs here, and nothing is changed."""
