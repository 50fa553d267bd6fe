"""HTTP connections as every process of styx serves them, within named limits."""
