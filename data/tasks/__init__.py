"""What each shipped skill is asked, and what happens then: values, calls, results, the answer."""

from data.tasks.intents import TASKS as _INTENTS
from data.tasks.numbers import TASKS as _NUMBERS
from data.tasks.task import Episode, Exchange, Task
from data.tasks.words import TASKS as _WORDS

TASKS: dict[str, Task] = {task.skill: task for task in (*_NUMBERS, *_WORDS, *_INTENTS)}
"""Every shipped skill's task, by the skill's name."""

HELD_OUT = ("quick-mail", "tip-calculator")
"""Skills that no training conversation mentions."""

TRAINED = tuple(sorted(TASKS.keys() - set(HELD_OUT)))

__all__ = ["HELD_OUT", "TASKS", "TRAINED", "Episode", "Exchange", "Task"]
