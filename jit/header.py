"""The C interface of compiled functions: their names and parameters in C, and the header that declares them.

    int32_t f(const float *x, const int64_t *n, float *result);

Tensors are passed by pointer, row by row; of structs, tuples and arrays the leaves, in order.  What has no such
form, as functions and pointers, is not exported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ..core.analysis.derivatives import parameter_names
from ..core.ir import Function, Module
from ..core.lazy_dataclass import dataclass
from ..core.ops.leaves import leaves_of
from ..core.types import TensorType, Type, written

OUT_OF_MEMORY: Final = -1
"""What a function returns when there is no memory for its intermediate values: numbers of checks are positive."""

MOST_LEAVES: Final = 1000
"""Tensors that a function with a C interface takes and returns. C compilers must support 127 parameters (C11, 5.2.4.1),
and those in use have no limit: any bound from there on does."""

C_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bool": "uint8_t",
        "i8": "int8_t",
        "i16": "int16_t",
        "i32": "int32_t",
        "i64": "int64_t",
        "f16": "uint16_t",
        "bf16": "uint16_t",
        "f32": "float",
        "f64": "double",
    }
)


@dataclass(frozen=True)
class CParameter:
    """A pointer to the elements of one leaf; `path` says where in the function's signature that is."""

    name: str
    type: TensorType
    path: str

    @property
    def element(self) -> str:
        """The C type of an element."""
        return C_TYPES[self.type.dtype.name]


@dataclass(frozen=True)
class Export:
    """A function of a module, `name`, as C sees it."""

    name: str
    symbol: str
    signature: str
    inputs: tuple[CParameter, ...]
    outputs: tuple[CParameter, ...]

    @property
    def prototype(self) -> str:
        """`int32_t f(const float *x, float *result)`."""
        parameters = [
            *(f"const {each.element} *{each.name}" for each in self.inputs),
            *(f"{each.element} *{each.name}" for each in self.outputs),
        ]
        return f"int32_t {self.symbol}({', '.join(parameters) or 'void'})"


@dataclass(frozen=True)
class Interface:
    """All that a module exports; `left_out` are functions that have no C interface, with the reason.

    `message` is the function that explains a number that another one returned; `has_variables` says that the functions
    share memory that lasts.
    """

    module: str
    exports: tuple[Export, ...]
    left_out: tuple[tuple[str, str], ...]
    message: str
    has_variables: bool = False


def interface_of(module: Module, names: Sequence[str]) -> Interface:
    """The C interface of the functions `names`, which have bodies or are derivatives of such."""
    taken = {name for name, function in module.functions.items() if function.body is None}
    kept = {name for name in names if _identifier(name, "f", ()) == name}
    taken |= kept
    exports: list[Export] = []
    left_out: list[tuple[str, str]] = []
    for name in names:
        function = module.functions[name]
        reason = _reason_against(function)
        if reason is not None:
            left_out.append((name, reason))
            continue
        symbol = name if name in kept else _identifier(name, "f", taken)
        taken.add(symbol)
        inputs, outputs = _parameters(module, function)
        exports.append(Export(name, symbol, str(function.type), inputs, outputs))
    message = _identifier(f"{module.name}_message", "module", taken)
    return Interface(module.name, tuple(exports), tuple(left_out), message, bool(module.variables))


def header_text(interface: Interface, messages: Sequence[str]) -> str:
    """The header, for C99 and C++; `messages` are what the codes 1, 2, … mean."""
    guard = f"NNKIT_{_identifier(interface.module, 'module', ()).upper()}_H"
    codes = [f"{number}: {message}" for number, message in enumerate(messages, 1)]
    lines = [
        *_comment(
            [
                f'The functions of the module "{interface.module}".  Made by dlc; do not edit.',
                "",
                "Tensors are passed by pointer: all elements, row by row, aligned to an element.",
                "Results must not overlap with arguments or each other.  f16 and bf16 are bit patterns,",
                f"bool is 0 or 1.  {_THREADS[interface.has_variables]}",
                "",
                f"A function returns 0, or a code that {interface.message} explains:",
                f"{OUT_OF_MEMORY}: out of memory",
                *codes,
            ]
        ),
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <stdint.h>",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
    ]
    for export in interface.exports:
        lines += ["", *_comment(_description(export)), f"{export.prototype};"]
    if interface.left_out:
        reasons = [f"{written('@', name)}: {reason}" for name, reason in interface.left_out]
        lines += ["", *_comment(["Without a C interface:", *reasons])]
    lines += [
        "",
        *_comment(["What a code means; an empty string for 0 and for other numbers."]),
        f"const char *{interface.message}(int32_t code);",
        "",
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        f"#endif /* {guard} */",
        "",
    ]
    return "\n".join(lines)


_THREADS: Final = (
    "Functions may be called from several threads at once.",
    "Functions share global variables: call them from one thread at a time.",
)


def _description(export: Export) -> Iterator[str]:
    yield f"{written('@', export.name)}: {export.signature}"
    parameters = [*export.inputs, *export.outputs]
    width = max((len(each.name) for each in parameters), default=0)
    for each in parameters:
        count = "1 element" if each.type.size == 1 else f"{each.type.size} elements"
        yield f"  {each.name:<{width}}  {each.path}: {each.type}, {count}"


def _comment(lines: Iterable[str]) -> list[str]:
    """A block comment; nothing in it ends it early or looks like something else to a C compiler."""
    safe = [_shown(line) for line in lines]
    return [f"/* {safe[0]}", *(f" * {line}".rstrip() for line in safe[1:]), " */"]


def _shown(text: str) -> str:
    printable = "".join(c if c.isprintable() else "\ufffd" for c in text)
    for mark in ("*/", "/*", "??"):
        while mark in printable:
            printable = printable.replace(mark, f"{mark[0]} {mark[1]}")
    return printable.replace("\\", "/")


def _reason_against(function: Function) -> str | None:
    count = 0
    for type in (*function.type.parameters, function.type.result):
        for leaf in leaves_of(type):
            count += 1
            if not isinstance(leaf.type, TensorType):
                return f"a value of type {leaf.type} has no form in C"
            if count > MOST_LEAVES:
                return f"it takes and returns more than {MOST_LEAVES} tensors"
    return None


def _parameters(
    module: Module, function: Function
) -> tuple[tuple[CParameter, ...], tuple[CParameter, ...]]:
    taken: set[str] = set()
    inputs: list[CParameter] = []
    names = parameter_names(module, function)
    for number, (name, type) in enumerate(zip(names, function.type.parameters, strict=True)):
        inputs += _made(type, name or f"x{number}", f"parameter {number}", taken)
    outputs = _made(function.type.result, "result", "result", taken)
    return tuple(inputs), tuple(outputs)


def _made(type: Type, name: str, path: str, taken: set[str]) -> list[CParameter]:
    made: list[CParameter] = []
    for leaf in leaves_of(type):
        assert isinstance(leaf.type, TensorType)
        identifier = _identifier("_".join(map(str, (name, *leaf.path))), "x", taken)
        taken.add(identifier)
        keys = ", ".join(f"#{key}" if isinstance(key, str) else str(key) for key in leaf.path)
        made.append(CParameter(identifier, leaf.type, f"{path} {keys}".rstrip()))
    return made


def _identifier(name: str, default: str, taken: Collection[str]) -> str:
    """`name` as an identifier of C and C++ that is free and nobody's."""
    word = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not word.strip("_"):
        word = default
    # leading underscores belong to the compiler
    word = word.lstrip("_") or default
    if word[0].isdigit():
        word = f"{default}{word}"
    if word in RESERVED:
        word += "_"
    unique, number = word, 1
    while unique in taken:
        number += 1
        unique = f"{word}_{number}"
    return unique


_KEYWORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const const_cast
consteval constexpr constinit continue co_await co_return co_yield decltype default delete do double dynamic_cast else
enum explicit export extern false float for friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast requires restrict return short signed
sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid typename
typeof union unsigned using virtual void volatile wchar_t while xor xor_eq linux unix near far
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t intptr_t uintptr_t main nothing
NULL NAN INFINITY HUGE_VAL EOF FILE BUFSIZ RAND_MAX EXIT_SUCCESS EXIT_FAILURE M_PI M_E errno stdin stdout stderr
"""

_MATH = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 exp10 expm1 fabs fdim floor fma
fmax fmin
fmod frexp gamma hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan
nearbyint nextafter nexttoward pow pow10 remainder remquo rint round scalb scalbln scalbn significand sin sincos sinh
sqrt tan tanh tgamma trunc y0 y1 yn drem signbit isinf isnan finite
cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog conj cpow cproj creal csin csinh csqrt ctan
ctanh
"""

_LIBRARY = """
abort abs alloca aligned_alloc atexit atof atoi atol atoll bcmp bcopy bsearch bzero calloc clock close div exit execl
execle execlp execv execve execvp ffs ffsl ffsll fopen fork fprintf fputc fputs free fscanf fwrite getenv gettext
imaxabs index isalnum isalpha isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit
labs ldiv llabs lldiv longjmp malloc memchr memcmp memcpy memmove mempcpy memset open posix_memalign printf putchar puts
qsort raise rand read realloc rindex scanf setjmp signal snprintf sprintf srand sscanf stpcpy stpncpy strcasecmp strcat
strchr strcmp strcpy strcspn strdup strfmon strftime strlen strncasecmp strncat strncmp strncpy strndup strpbrk strrchr
strspn strstr strtod strtol strtoul system time toascii tolower toupper towlower towupper vfprintf vfscanf vprintf
vscanf vsnprintf vsprintf vsscanf write
"""

RESERVED: Final = frozenset(
    [
        *_KEYWORDS.split(),
        *(
            f"{name}{suffix}"
            for name in _MATH.split()
            for suffix in ("", "f", "l", "_r", "f_r", "l_r")
        ),
        *_LIBRARY.split(),
    ]
)
"""What a function or parameter must not be called: words of C and C++, and what the C library or compiler has."""
