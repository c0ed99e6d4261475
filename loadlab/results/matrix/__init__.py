"""The best of the candidates of a matrix, and how many blocks it needs."""
