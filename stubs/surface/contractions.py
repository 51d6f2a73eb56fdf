"""Contractions: what the checkers know of einsum, tensordot and the products of vectors."""

from __future__ import annotations

from collections.abc import Iterator

from .expressions import (
    COMMON_LAST,
    MAX_LISTED,
    MAX_RANK,
    NOT_DECORATED,
    OTHER_DIMENSIONS,
    RANKS,
    define,
    dims,
    plain,
    refused,
    rep,
    tensor,
    title,
)

READ = """
    i,i-> i,i i,i->i i,j->ij i,j->ji i-> ij-> ij ij->i ij->j ij->ji ii ii-> ii->i iij->j ijk->ij ijk->i ijk->
    ijk->kji ijk->jik ijk->ikj i,ij->j i,ij ij,j->i ij,j ij,i->j ij,jk->ik ij,jk ij,kj->ik ji,jk->ik ij,kj
    ij,jk,kl->il ij,jk,k->i i,ij,j-> i,ij,j ij,ij-> ij,ij ij,ij->i ij,ij->j ij,ij->ij ij,ji-> ij,kl->ijkl
    ik,kj->ij ik,jk->ij ki,kj->ij ij,jk->ki bi,bi->b bi,bj->bij bi,ij->bj bi,ji->bj bi,ij,bj->b bij,bjk->bik
    bij,bkj->bik bij,bik->bjk bij,bji->b bij,jk->bik bij,kj->bik bij,bj->bi bij,bi->bj bij,j->bi bij->bi
    bij->bj bij->ij bij->bji bii->b bii->bi bij,bij->b bij,bij-> bik,bkj->bij ni,ni->n ni,nj->nij ni,nj->ij
    ni,ij->nj nd,md->nm nd,kd->nk nk,nd->kd bd,bd->b bd,dk->bk td,sd->ts bqd,bkd->bqk bqk,bkd->bqd
    btd,bsd->bts bts,bsd->btd bnm,bmd->bnd bnd,bmd->bnm btd,de->bte btd,hd->bth bhqd,bhkd->bhqk
    bhqk,bhkd->bhqd bqhd,bkhd->bhqk bhqk,bkhd->bqhd bthd,bshd->bhts bhts,bshd->bthd bhij,bhjd->bhid
    bhid,bhjd->bhij bchw,oc->bohw bchw->bc bchw->bhwc bhwc->bchw abij,abjk->abik abij,abkj->abik ijkl->lkji
    ijij i,j,k->ijk i,j-> i,i,i-> ij,i,j-> ij,i->ij ij,j->ij ij,ij,ij-> ij,jk,ki-> ij,ik->jk ij,ik->kj
    ij,ik,i->jk ij,jk,lk->il ij,kj,lk->il ji,j->i ij,jk->ijk ij,ik->ijk ij,kl->ikjl ij,kl-> iij-> iji->j
    iij->ij iijj-> ijij-> ijk->jki ijk->kij ijk->ik ijk->jk ijk->j ijk->k ijk,k->ij ijk,j->ik ijk,i->jk
    ijk,ijk-> ijk,kl->ijl ijk,lk->ijl ijk,jl->ikl ijk,jk->i ijk,ij->k ijk,ik->j ijk,i,j->k ijk,j,k->i
    ijk,i,j,k-> ij,jkl->ikl ij,kjl->kil ijk,klm->ijlm ijkl,kl->ij ijkl->ij ijkl->i ijkl->jilk ijkl->ijlk
    ijkl->ikjl ijkl->klij bi,bi-> bi,bj->ij bi,oi->bo oi,bi->bo bi,ij->bij bi,bij->bj bij,bi,bj->b
    bi,bij,bj->b bi,oij,bj->bo bi,ijk,bj->bk bi,kij,bj->bk bki,bkj->bij bkj,bki->bij bij,bik->bkj bij,bik->jk
    bij,bik->ijk bij,bjk->ik bij,bjk,bkl->bil bij,ij->b bij,i->bj bij,ik->bkj bij,ki->bkj bij,ikj->bk
    ij,bjk->bik ij,bkj->bki ij,bj->bi ji,bj->bi bij,bj,bi->b bij,jk,bik-> bij->b bij->i bij->j btd,dhk->bthk
    btd,dhk->bhtk btd,hdk->bhtk btd,hdk->bthk bthk,hkd->btd bhtk,hkd->btd td,dhk->thk td,dhk->htk thk,hkd->td
    htk,hkd->td htd,hsd->hts hts,hsd->htd thd,shd->hts hts,shd->thd bhqk,bhkd->bqhd bqhd,bhkd->bhqk
    bhqd,bhdk->bhqk bhqd,bkd->bhqk bhqk,bkd->bhqd bqd,kd->bqk bqk,kd->bqd bhij->bij bhij->bih bhij,h->bij
    bhij,hk->bkij bchw->bchw bchw->c bchw->b bchw,c->bchw bchw,bc->bchw bchw->bwhc bchw,co->bohw bhwc,co->bhwo
    bhwc,oc->bhwo bhwc->bc chw->hwc hwc->chw chw,oc->ohw chw->c bijk,bijk->b bijk,bilk->bijl bijk,bikl->bijl
    bcdhw,oc->bodhw bcdhw->bc bcdhw->bdhwc bdhwc->bcdhw ijk,lm->ijklm abcij,abcjk->abcik abcij,abckj->abcik
""".split()
"""Subscripts of which checkers know the rank of the result, and with LETTERS for labels; of others, if `rank=` says it.

Operands are typed in one way in all overloads: else checkers take calls with unnamed dimensions for ambiguous.
"""
LETTERS = """
    i j k n b a
    ij ji ik jk ab bi bj bd bn nd nk nm mn td
    ijk ikj jik kij abc bij bik bnd btd bts bqd bdo nij nik ndk nkd nmk mnk tij
    ijkl abcd bijk bikj bnmd btsd btde btds bqdk bqkd nijk nikj hqdk htsd bchw nchw bhwc nhwc
    ijklm abcde bijkl bhqdk bhqkd bqhdk bqhkd bthds bthsd bhtds bhtsd bhijk bhikj bnhdm nchwo
""".split()
"""What is usual for labels, in the order in which they first occur."""


def known() -> list[str]:
    """The subscripts, as they stand above and with other labels."""
    found = dict[str, None](dict.fromkeys(READ))
    for text in READ:
        labels = dict.fromkeys(filter(str.isalpha, text))
        for letters in LETTERS:
            if len(letters) == len(labels):
                found[text.translate(str.maketrans("".join(labels), letters))] = None
    return list(found)


def rank_of_result(subscripts: str) -> int:
    """How many labels the result has."""
    left, arrow, right = subscripts.partition("->")
    return len(right) if arrow else sum(left.count(label) == 1 for label in {*left} - {","})


def contractions() -> Iterator[str]:
    yield title("contractions")
    yield from define("einsum", _einsum())
    yield from define("tensordot", _tensordot())
    yield from define("inner", _inner())
    yield from define("outer", _outer())
    any_numbers = "(a: View[AnyTensor[N]], b: View[AnyTensor[N]], /) -> Rep[Tensor0D[N]]"
    yield from define("vdot", [any_numbers])
    yield from define("kron", _kron())
    yield from define("cross", _cross())
    for name, mode in {"convolve": "full", "correlate": "valid"}.items():
        vector = rep(plain(1, "N"))
        option = f"mode: Literal['full', 'same', 'valid'] = '{mode}'"
        yield from define(name, [f"(a: {vector}, v: {vector}, {option}) -> {vector}"])


def _cross() -> Iterator[str]:
    """Of one shape, or of single vectors and several."""
    axes = "axisa: int = -1, axisb: int = -1, axisc: int = -1, axis"
    for r in RANKS[1:]:
        own = rep(plain(r, "N"))
        yield f"(a: {own}, b: {own}, {axes}: int | None = None) -> {own}"
    for r in RANKS[2:]:
        own, vector = rep(plain(r, "N")), rep(plain(1, "N"))
        yield f"(a: {vector}, b: {own}, {axes}: Literal[-1] | None = None) -> {own}"
        yield f"(a: {own}, b: {vector}, {axes}: Literal[-1] | None = None) -> {own}"


def _einsum() -> Iterator[str]:
    operands = "*operands: View[AnyTensor[N]]"
    for r in COMMON_LAST:
        texts = ", ".join(f"'{text}'" for text in known() if rank_of_result(text) == r)
        yield f"(subscripts: Literal[{texts}], /, {operands}, rank: None = None) -> {rep(plain(r, 'N'))}"
    for r in COMMON_LAST:
        yield f"(subscripts: str, /, {operands}, rank: Literal[{r}]) -> {rep(plain(r, 'N'))}"
    yield f"(subscripts: str, /, {operands}, rank: None = None) -> Rep[Any]"
    yield f"(subscripts: str, /, *operands: UnstagedData, rank: int | None = None, {NOT_DECORATED}) -> Rep[Any]"


def _tensordot() -> Iterator[str]:
    for count in (0, 1, 2):
        pair = f"tuple[tuple[{', '.join(['int'] * count)}], tuple[{', '.join(['int'] * count)}]]"
        forms = [f"Literal[{count}]", *([pair] if count else [])]
        for axes in [*forms, *(["tuple[int, int]"] if count == 1 else [])]:
            for r in RANKS:
                for s in RANKS:
                    if max(r, s) > MAX_LISTED and min(r, s) > 2:
                        continue
                    if count <= min(r, s) and r and s and r + s - 2 * count <= MAX_RANK:
                        x, y = rep(plain(r, "N")), rep(plain(s, "N"))
                        default = " = 2" if axes == "Literal[2]" else ""
                        made = rep(plain(r + s - 2 * count, "N"))
                        yield f"(a: {x}, b: {y}, axes: {axes}{default}) -> {made}"


def _inner() -> Iterator[str]:
    for r in COMMON_LAST[1:]:
        for s in COMMON_LAST[1:]:
            if r + s - 2 <= MAX_RANK:
                last = dims(r)[-1]
                right = [*OTHER_DIMENSIONS[: s - 1], last]
                x, y = rep(tensor(r, None, "N")), rep(tensor(s, right, "N"))
                made = [*dims(r)[:-1], *right[:-1]]
                yield f"(a: {x}, b: {y}, /) -> {rep(tensor(r + s - 2, made, 'N'))}"


def _outer() -> Iterator[str]:
    yield "(a: Rep[Tensor1D[N, I]], b: Rep[Tensor1D[N, J]]) -> Rep[Tensor2D[N, I, J]]"
    yield "(a: View[AnyTensor[N]], b: View[AnyTensor[N]]) -> Rep[Tensor2D[N]]"


def _kron() -> Iterator[str]:
    wanted = refused("TensorLikeTheFirst")
    yield f"(a: Rep[Y], b: {wanted}) -> Rep[Y]"
    for r in COMMON_LAST:
        for s in RANKS:
            x, y = rep(plain(r, "N")), rep(plain(s, "N"))
            yield f"(a: {x}, b: {y}) -> {rep(plain(max(r, s), 'N'))}"
