"""The model's choice of a tool, and the planner's weighing with that choice at its head."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from jackfield.transport.protocol import TransportError

from jackfield_local.llama.briefing import NONE, choice
from jackfield_local.llama.engine import Brief, Message, Writer, closing
from jackfield_local.planner.choosing.chooser import Weighed, Weighing
from jackfield_local.planner.choosing.small_talk import Talk
from jackfield_local.planner.deciding.decide import CERTAIN
from jackfield_local.planner.heard import Heard
from jackfield_local.planner.reading.tool import Tool
from jackfield_local.planner.remembered import Remembered
