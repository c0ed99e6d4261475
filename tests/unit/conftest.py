"""What all unit tests share."""

from hypothesis import settings

# How long an example takes is the machine's affair: others may be at work beside it. `make
# test-all` takes many examples of each property.
settings.register_profile("few", deadline=None, max_examples=25)
settings.register_profile("many", deadline=None, max_examples=100)
settings.load_profile("few")
