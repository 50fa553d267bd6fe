"""The experiments of the two papers that run Online Marketplace, and more of the same form: settings side by side."""
