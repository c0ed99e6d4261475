"""What all unit tests share."""

from hypothesis import settings

# How long an example takes is the machine's affair: others may be at work beside it.
settings.register_profile("lab", deadline=None)
settings.load_profile("lab")
