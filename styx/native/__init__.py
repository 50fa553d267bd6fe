"""What exists for the compiled form alone: the same behaviour in the plain form, at another price."""
