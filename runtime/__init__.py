"""Running a model: backends, the agent loop, the terminal chat."""
