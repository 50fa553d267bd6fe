"""Code that exists only for the compiled form: without it the behaviour would be the same, and the cost higher."""
