"""`styx up`: a whole cluster on this machine as child processes, supervised."""
