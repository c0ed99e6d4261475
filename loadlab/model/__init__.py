"""The typed records of the lab: what crosses from one package or file to another."""

# ruff: noqa: F403

from loadlab.model.base import *
from loadlab.model.cell import *
from loadlab.model.certificate import *
from loadlab.model.claims import *
from loadlab.model.hardware import *
from loadlab.model.latency import *
from loadlab.model.lesson import *
from loadlab.model.limits import *
from loadlab.model.options import *
from loadlab.model.repetition import *
from loadlab.model.reproduction import *
from loadlab.model.result import *
from loadlab.model.run import *
from loadlab.model.statistics import *
from loadlab.model.study import *
from loadlab.model.summary import *
from loadlab.model.table import *
from loadlab.model.telemetry import *
from loadlab.model.verdict import *
