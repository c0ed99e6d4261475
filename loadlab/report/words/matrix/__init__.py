"""Words for a matrix: its schedule, its rounds, its answer."""
