"""Whatever way a value is read while a function is traced, a change of it is seen: by Python and by native code."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import types
from typing import Any

import numpy as np

from nnkit import Tensor1D
from nnkit.jit.entry.guards import Guard, can_guard
from nnkit.staging.read_places import MISSING

X = Tensor1D(np.array([1.0, 2.0]))

SETUP = """
import collections, contextvars, dataclasses, enum, functools, operator, sys, types
import numpy as np
from nnkit import staged
import settings

@dataclasses.dataclass
class Config:
    rate: float
class Part:
    rate = 3.0
class Slots:
    __slots__ = ("rate",)
    def __init__(self, rate):
        self.rate = rate
class Method:
    def rate(self):
        return 3.0
class Below(Method):
    pass
class Box:
    def __init__(self, value=None):
        self.it = value
    def get(self):
        return self.it
    def same(self):
        return self.get()
    @property
    def computed(self):
        return self.it
    def __call__(self):
        return self.it
class Reading(Box):
    def __getitem__(self, name):
        return getattr(self, name)
    def __iter__(self):
        yield self.it
    def get(self):
        return super().get()
class Asking:
    def __init__(self, value):
        self.held = {"it": value}
    def __getattr__(self, name):
        return self.held[name]
class Mapped(dict):
    __getattr__ = dict.__getitem__
class Twice:
    class_one = None
class Under(Twice):
    @classmethod
    def by_class(cls):
        return cls.class_one
    @staticmethod
    def static():
        return Under.class_one
class InSlots:
    __slots__ = ("it",)
Point = collections.namedtuple("Point", "it other")
class Asked(type):
    pass
class Of(metaclass=Asked):
    pass
class Held(Box):
    def __get__(self, one, cls=None):
        return self.it
def asked(one):
    return one.it
def through(one):
    return asked(one)
def decorated(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)
    return inner
"""
# what a value is: how it is made, what of it is read, and how it is changed: in place, or by another one in its place
KINDS = {
    "float": ("3.0", "{}", None, "5.0"),
    "int": ("3", "{}", None, "5"),
    "bool": ("True", "{} + 2", None, "False"),
    "str": ("'abc'", "len({})", None, "'abcde'"),
    "tuple": ("(1.0, 3.0)", "{}[1]", None, "(1.0, 5.0)"),
    "list": ("[0.0] * 90 + [3.0]", "{}[90]", "{}[90] = 5.0", None),
    "sorted": ("[[3.0], [4.0]]", "min({})[0]", "{}[0][0] = 5.0", None),
    "set": ("{float(k) for k in range(4)}", "max({})", "{}.add(5.0)", None),
    "dict": ("{k: 3.0 for k in range(300)}", "{}[299]", "{}[299] = 5.0", None),
    "keys": ("{'a': 1, 'b': 2}", "len({})", "{}['c'] = 3", None),
    "array": ("np.full(100, 3.0)", "float({}[70])", "{}[70] = 5.0", None),
    "view": ("np.full((4, 40), 3.0)[:, ::3]", "float({}[1, 2])", "{}.base[1, 6] = 5.0", None),
    "objects": ("np.array([[3.0], None], object)", "{}[0][0]", "{}[0][0] = 5.0", None),
    "bytes": ("bytearray(b'aaa')", "float({}[1])", "{}[1] = 5", None),
    "deque": ("collections.deque([3.0, 4.0])", "{}[0]", "{}[0] = 5.0", None),
    "namespace": ("types.SimpleNamespace(rate=3.0)", "{}.rate", "{}.rate = 5.0", None),
    "dataclass": ("Config(3.0)", "{}.rate", "{}.rate = 5.0", None),
    "fields": ("Config(3.0)", "dataclasses.astuple({})[0]", "{}.rate = 5.0", None),
    "deep": ("Config(Config([3.0]))", "{}.rate.rate[0]", "{}.rate.rate[0] = 5.0", None),
    "slots": ("Slots(3.0)", "{}.rate", "{}.rate = 5.0", None),
    "hidden": ("Part()", "{}.rate", "{}.rate = 5.0", None),
    "function": ("(lambda *_: 3.0)", "{}()", None, "(lambda *_: 5.0)"),
    "default": ("(lambda *_, k=3.0: k)", "{}()", "{}.__kwdefaults__ = dict(k=5.0)", None),
    "code": ("(lambda *_: 3.0)", "{}()", "{}.__code__ = (lambda *_: 5.0).__code__", None),
    "partial": ("functools.partial(max, [3.0])", "{}()", "{}.args[0].append(5.0)", None),
    "class": ("type('C', (Part,), {})", "{}.rate", "{}.rate = 5.0", None),
    "base": ("type('C', (type('B', (), {'rate': 3.0}),), {})", "{}().rate", "{}.__base__.rate = 5.0", None),
    "method": ("type('M', (Method,), {})", "{}().rate()", "{}.rate = lambda self: 5.0", None),
    "object": ("type('M', (Method,), {})()", "{}.rate()", "type({}).rate = lambda self: 5.0", None),
}  # fmt: skip
# a way to it: how it is held, how it is read, and how another one is put in its place, if that is possible
WAYS = {
    "global": ("it = {}", "it", "it = {}"),
    "attribute": ("box = Box({})", "box.it", "box.it = {}"),
    "two levels": ("box = Box(Box({}))", "box.it.it", "box.it.it = {}"),
    "getattr": ("box = Box({})", "getattr(box, 'it')", "box.it = {}"),
    "computed getattr": ("box = Box({})", "getattr(box, ''.join(['i', 't']))", "box.it = {}"),
    "vars": ("box = Box({})", "vars(box)['it']", "box.it = {}"),
    "all of vars": ("box = Box({})", "[*vars(box).values()][0]", "box.it = {}"),
    "__dict__": ("box = Box({})", "box.__dict__['it']", "box.it = {}"),
    "attrgetter": ("box, get = Box({}), operator.attrgetter('it')", "get(box)", "box.it = {}"),
    "methodcaller": ("box, get = Box({}), operator.methodcaller('get')", "get(box)", "box.it = {}"),
    "globals": ("it = {}", "globals()['it']", "it = {}"),
    "globals get": ("it = {}", "globals().get('it')", "it = {}"),
    "computed globals": ("it = {}", "globals()[''.join(['i', 't'])]", "it = {}"),
    "eval": ("it = {}", "eval('it')", "it = {}"),
    "computed eval": ("it = {}", "eval('i' + chr(116))", "it = {}"),
    "module": ("settings.it = {}", "settings.it", "settings.it = {}"),
    "getattr module": ("settings.it = {}", "getattr(settings, 'it')", "settings.it = {}"),
    "sys.modules": ("settings.it = {}", "sys.modules['settings'].it", "settings.it = {}"),
    "import": ("settings.it = {}\ndef get():\n import settings as s\n return s.it", "get()", "settings.it = {}"),
    "from import": ("settings.it = {}\ndef get():\n from settings import it\n return it", "get()", "settings.it = {}"),
    "list": ("items = [0] * 50 + [{}]", "items[50]", "items[50] = {}"),
    "loop": ("items = [{}]", "[one for one in items][0]", "items[0] = {}"),
    "dict": ("table = {{'k': {}}}", "table['k']", "table['k'] = {}"),
    "get": ("table = {{1: {}}}", "table.get(1)", "table[1] = {}"),
    "itemgetter": ("table, get = {{1: {}}}, operator.itemgetter(1)", "get(table)", "table[1] = {}"),
    "bound": ("table = {{1: {}}}\nget = table.get", "get(1)", "table[1] = {}"),
    "proxy": ("table = {{1: {}}}\nshown = types.MappingProxyType(table)", "shown[1]", "table[1] = {}"),
    "default dict": ("table = collections.defaultdict(list)\ntable[1] = {}", "table[1]", "table[1] = {}"),
    "ordered": ("table = collections.OrderedDict(k={})", "table['k']", "table['k'] = {}"),
    "chain map": ("table = collections.ChainMap({{}}, {{1: {}}})", "table[1]", "table.maps[1][1] = {}"),
    "user dict": ("table = collections.UserDict(k={})", "table['k']", "table['k'] = {}"),
    "class of dicts": ("table = Mapped(it={})", "table.it", "table['it'] = {}"),
    "tuple": ("items = ([{}],)", "items[0][0]", "items[0][0] = {}"),
    "namedtuple": ("items = Point([{}], 1)", "items.it[0]", "items.it[0] = {}"),
    "slots": ("box = InSlots()\nbox.it = {}", "box.it", "box.it = {}"),
    "getattr of slots": ("box = InSlots()\nbox.it = {}", "getattr(box, 'it')", "box.it = {}"),
    "helper": ("it = {}\ndef get():\n return it", "get()", "it = {}"),
    "helper of a helper": ("it = {}\ndef get():\n return it\ndef more():\n return get()", "more()", "it = {}"),
    "parameter": ("box = Box({})", "through(box)", "box.it = {}"),
    "decorated": ("box = Box({})\nget = decorated(asked)", "get(box)", "box.it = {}"),
    "lambda in a dict": ("it = {}\ntable = dict(k=lambda: it)", "table['k']()", "it = {}"),
    "alias": ("box = Box({})\ndef get():\n b = box\n c = b\n return c.it", "get()", "box.it = {}"),
    "walrus": ("box = Box({})", "(b := box).it", "box.it = {}"),
    "match": (
        "box = Point([{}], 1)\ndef get():\n match box:\n  case Point(k):\n   return k[0]",
        "get()", "box.it[0] = {}",
    ),
    "match keyword": ("box = Box({})\ndef get():\n match box:\n  case Box(it=k):\n   return k", "get()", "box.it = {}"),
    "closure": (
        "def make(k):\n def get():\n  return k\n def put(v):\n  nonlocal k\n  k = v\n"
        " return get, put\nget, put = make({})",
        "get()", "put({})",
    ),
    "default": ("def get(k=[{}]):\n return k[0]", "get()", "get.__defaults__[0][0] = {}"),
    "keyword default": ("def get(*, k={}):\n return k", "get()", "get.__kwdefaults__['k'] = {}"),
    "partial": ("box = Box({})\nget = functools.partial(through, box)", "get()", "box.it = {}"),
    "method": ("box = Box({})", "box.same()", "box.it = {}"),
    "bound method": ("box = Box({})\nget = box.same", "get()", "box.it = {}"),
    "super": ("box = Reading({})", "box.same()", "box.it = {}"),
    "property": ("box = Box({})", "box.computed", "box.it = {}"),
    "object": ("box = Box({})", "box()", "box.it = {}"),
    "getitem": ("box = Reading({})", "box['it']", "box.it = {}"),
    "iter": ("box = Reading({})", "[*box][0]", "box.it = {}"),
    "__getattr__": ("box = Asking({})", "box.it", "box.held['it'] = {}"),
    "class": ("Box.shared = {}", "Box.shared", "Box.shared = {}"),
    "class of an object": ("Box.shared = {}\nbox = Box()", "box.shared", "Box.shared = {}"),
    "class that is below": ("Twice.class_one = {}", "Under.class_one", "Twice.class_one = {}"),
    "class method": ("Twice.class_one = {}", "Under.by_class()", "Twice.class_one = {}"),
    "static method": ("Twice.class_one = {}", "Under.static()", "Twice.class_one = {}"),
    "hidden by an object": ("Box.shared = {}\nbox = Box()", "box.shared", "box.shared = {}"),
    "hidden by a class": (
        "Twice.class_one = {}\nOwn = type('Own', (Twice,), {{}})\nbox = Own()",
        "box.class_one", "Own.class_one = {}",
    ),
    "lazily": ("box = Box()\ndef get():\n if box.it is None:\n  box.it = {}\n return box.it", "get()", "box.it = {}"),
    "lazy global": ("it = None\ndef get():\n global it\n if it is None:\n  it = {}\n return it", "get()", "it = {}"),
    "written beside": (
        "items = [{}]\ndef get():\n local = [0]\n local[0] = 1\n return items[0]",
        "get()", "items[0] = {}",
    ),
    "enumeration": ("class Kind(enum.Enum):\n    it = [{}]", "Kind.it.value[0]", "Kind.it.value[0] = {}"),
    "class of a class": ("Asked.it = {}", "Of.it", "Asked.it = {}"),
    "descriptor": ("class Own:\n    it = Held({})", "Own().it", "vars(Own)['it'].it = {}"),
    "generator": ("items = [{}]\ndef get():\n    yield from items", "[*get()][0]", "items[0] = {}"),
    "sorted": ("items = [Box({}), Box()]", "sorted(items, key=lambda one: one.it is None)[0].it", "items[0].it = {}"),
    "inner class": ("it = {}\ndef get():\n    class Own:\n        k = it\n    return Own.k", "get()", "it = {}"),
    "context variable": ("one = contextvars.ContextVar('one')\none.set({})", "one.get()", "one.set({})"),
}  # fmt: skip
OF_OBJECTS = ("class of an object", "hidden by an object", "class of a class")
OF_FUNCTIONS = ("default", "code")
"""What is written to a function cannot be written to a method."""


def holds(guard: Guard) -> bool:
    """As native code reads it."""
    return all(
        ctypes.c_int64.from_address(int(at)).value == word for at, word in guard.pairs
    ) and all(
        ctypes.string_at(int(at), int(size)) == ctypes.string_at(int(was), int(size))
        for at, was, size in guard.blocks
    )


def seen(way: str, kind: str, scope: dict[str, Any]) -> str:
    """What is wrong with a value of this kind that is read this way, if something is."""
    hold, read, put = WAYS[way]
    made, use, change, other = KINDS[kind]
    exec(hold.format(made), scope)
    exec(f"f = staged(lambda a: a * float({use.format(read)}))", scope)
    first, f = scope["f"].ir(X), scope["f"]
    reads = f.stageable.reads
    variables = [(slot.holder, slot.name, slot.value) for slot in reads.slots]
    guard = Guard(variables, MISSING)
    is_native = can_guard() and guard.update(variables, MISSING)
    if reads.have_changed() or (is_native and not holds(guard)):
        return "changed before it is"
    exec(put.format(other) if change is None else change.format(f"({read})"), scope)
    if is_native and holds(guard):
        return "not seen by native code"
    again = f.ir(X)
    exec(f"f = staged(lambda a: a * float({use.format(read)}))", scope)
    if again == first or again != scope["f"].ir(X):
        return "not seen"
    return ""


def wrong() -> dict[str, str]:
    """Each way with a number and an eighth of the kinds, each kind with an eighth of the ways (all took 10 s)."""
    sys.modules["settings"] = types.ModuleType("settings")
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(SETUP, scope)
    pairs = [
        (way, kind)
        for i, way in enumerate(WAYS)
        for j, kind in enumerate(KINDS)
        if (kind == "float" or (i + j) % 8 == 0)
        and not (way in OF_OBJECTS and kind in OF_FUNCTIONS)
    ]
    return {
        f"{kind} by {way}": found for way, kind in pairs if (found := seen(way, kind, dict(scope)))
    }


def test_what_is_read_is_seen_to_change_whatever_it_is_and_however_it_is_read() -> None:
    """In a process of its own: some ways watch all modules, and those of other tests are many."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.staging.test_reached"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.stdout == "{}\n", done.stdout + done.stderr


if __name__ == "__main__":
    print(wrong())
