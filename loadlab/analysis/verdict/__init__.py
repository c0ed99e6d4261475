"""The verdict on two variants, and how many blocks it needs."""
