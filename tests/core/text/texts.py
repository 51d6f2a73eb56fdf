"""Modules as text that have, all together, everything that can be written."""

from __future__ import annotations

from .test_parser import SLIDES

FAMILIES = """module "families"
stage raw
struct $Pair { #a: <2 x 3 x f32>, #"b c": (i64, bool) }
!inline
func @families: (<2 x 3 x f32>, <2 x i64>, $Pair) -> (<2 x 3 x f32>, i64) {
'entry(%x: <2 x 3 x f32>, %i: <2 x i64>, %p: $Pair):
    %a = extract #"b c", 1 from %p: $Pair
    %b = select %x: <2 x 3 x f32>, -0.0: f32 by %a: bool
    %c = dataTypeCast %b: <2 x 3 x f32> to i32
    %d = reduce %c: <2 x 3 x i32> by max init 3: i32 along 0, 1
    %e = transpose %x: <2 x 3 x f32> permuting (1, 0)
    %f = slice %e: <3 x 2 x f32> from (0, 1) upto (3, 2) strides (2, 1)
    %g = pad %f: <2 x 1 x f32> by %h0: f32 low (0, 1) high (1, 0) interior (1, 0)
    %h = concatenate %e: <3 x 2 x f32>, %e: <3 x 2 x f32> along 1
    %j = gather %x: <2 x 3 x f32> at %i: <2 x i64> along 0 bounds clip
    %k = scatterAdd %j: <2 x 3 x f32> at %i: <2 x i64> along 0 to 4 x 3 bounds zero
    %k2 = scatter %x: <2 x 3 x f32> to %k: <4 x 3 x f32> at %i: <2 x i64> by add bounds clip
    %l = scan %k2: <4 x 3 x f32> by multiply along 1 reverse true exclusive true
    %m = argMax %l: <4 x 3 x f32> along 1
    %n = oneHot %m: <4 x i64> depth 3 as f16
    %o = iota 2 x 3 along 1 as bf16
    %q = literal <<1, 2.5, -inf>, <nan, 1e-45, 0.0>>: <2 x 3 x f32>
    %r = dot %x: <2 x 3 x f32>, %e: <3 x 2 x f32>
    %s = threefry 7: i64, %i: <2 x i64>
    %t = literal {#a = %x: <2 x 3 x f32>, #"b c" = (1: i64, true: bool): (i64, bool)}: $Pair
    %u = apply @families(%q, %i, %t): (<2 x 3 x f32>, <2 x i64>, $Pair) -> (<2 x 3 x f32>, i64)
    return %u: (<2 x 3 x f32>, i64)
}
[gradient @families from 0 wrt 0, 2 keeping 1 seedable]
func @d: (<2 x 3 x f32>, <2 x i64>, $Pair, <2 x 3 x f32>) -> (<2 x 3 x f32>, $Pair, i64)
""".replace("%h0: f32", "0.5: f32")

SCHEDULED = """module "scheduled"
stage schedule
func @f: (<4 x 4 x f32>, <4 x i64>) -> (<4 x 4 x i64>, <4 x f32>) {
'entry(%x: <4 x 4 x f32>, %i: <4 x i64>):
    %a, %b = kernel of %i: <4 x i64>, %x: <4 x 4 x f32> writing <4 x 4 x f32>, <4 x f32>
        overwriting (1, 0) using <4 x f32> into arena 64, output 1 scratch arena 256 {
    'body(%n: *<4 x i64>, %u: *<4 x 4 x f32>, %y: *<4 x 4 x f32>, %z: *<4 x f32>, %t: *<4 x f32>):
        loop from 0 upto 4 by 1 parallel 2 {
        'loop(%d0: i64):
            %k = loadAt %n: *<4 x i64> at (d0) of %d0: i64
            checkIndex %k: i64 of 4
            %all = literal true: bool
            %v = loadWhere %all: bool, %u: *<4 x 4 x f32> at (d0, 0) lanes 4 steps (0, 1) active 3 of %k: i64
            %c = literal 1.5: f32
            %w = multiply %v: <4 x f32>, %c: f32
            storeAt %w: <4 x f32> to %y: *<4 x 4 x f32> at (d0, 0) steps (0, 1) of %d0: i64
            %m = reduceLanes %v: <4 x f32> by max
            storeAt %m: f32 to %z: *<4 x f32> at (d0) of %d0: i64
            yield
        }
        yield
    }
    %s = kernel of %a: <4 x 4 x f32> writing <4 x 4 x i64> using <4 x i64> private 2 into output 0 scratch arena 192 {
    'body(%u: *<4 x 4 x f32>, %y: *<4 x 4 x i64>, %t: *<4 x i64>):
        %four = literal 4: i64
        loop from 0 upto 4 by 1 parallel 1 {
        'loop(%d0: i64):
            %begin = literal -1: i64
            %last = boundedLoop %d0: i64 upto %four: i64 within 1 upto 4 carrying %begin: i64 {
            'loop(%d1: i64, %m: i64):
                %v = loadAt %u: *<4 x 4 x f32> at (d0, d1) of %d0: i64, %d1: i64
                %w = dataTypeCast %v: f32 to i64
                storeAt %w: i64 to %t: *<4 x i64> at (d0) of %d1: i64
                storeAt %w: i64 to %y: *<4 x 4 x i64> at (d0, d1) of %d0: i64, %d1: i64
                yield %d1: i64
            }
            storeAt %last: i64 to %y: *<4 x 4 x i64> at (d0, 0) of %d0: i64
            yield
        }
        yield
    }
    %r = literal (%s: <4 x 4 x i64>, %b: <4 x f32>): (<4 x 4 x i64>, <4 x f32>)
    return %r: (<4 x 4 x i64>, <4 x f32>)
}
"""

WHOLE = """module "all"
stage raw
var @v: *$Tree
func @sum: ($Tree) -> f32 {
'entry(%t: $Tree):
    branchEnum %t: $Tree case ?leaf 'leaf case ?node 'node case ?none 'end
'leaf(%x: f32):
    branch 'exit(%x: f32)
'node(%l: $Tree, %r: $Tree):
    %a = apply @sum(%l): ($Tree) -> f32
    %b = apply @2(%r) -> f32
    %c = add %a: f32, %b: f32
    branch 'exit(%c: f32)
'end():
    branch 'exit(zero: f32)
'exit(%4^0: f32):
    return %4^0: f32
}
type $Pair = ($S, [2 x f32])
enum $Tree { ?leaf(f32) ?node($Tree, $Tree)
   ?none }
struct $S { #t: $Tree
 #f: (f32) -> f32 }
type $O = opaque
var @w: $O
func @late: () -> f32 {
'a():
    branch 'c
'b():
    %y = negate %x: f32
    negate %y: f32
    return %1.1: f32
'c():
    %x = literal 1: f32
    branch '1
}
[extern]
func @ext: (f32) -> f32
!inline
[tangent @max from 0 keeping 0 wrt 0]
func @jvp: (f32, f32, f32) -> (f32, f32)
func @max: (f32, f32) -> f32 {
'e(%a: f32, %b: f32):
    %m = max %a: f32, %b: f32
    return %m: f32
}
func @g: (<4 x 5 x f32>, (f32, f32) -> f32) -> $Pair {
'e(%x: <4 x 5 x f32>, %f: (f32, f32) -> f32):
    %r = reduce %x: <4 x 5 x f32> by @max along 0
    %r2 = reduce %x: <4 x 5 x f32> by %f: (f32, f32) -> f32 init -inf: f32 along 0, 1
    %s = scan %x: <4 x 5 x f32> by @max: (f32, f32) -> f32 init 0: f32 along 1 reverse true
    %w = reduceWindow %x: <4 x 5 x f32> by builtin "max" init 0: f32 dims 2, 2 padding half strides 2, 2
    %w2 = reduceWindow %x: <4 x 5 x f32> by @max init 0: f32 dims 2, 2 padding (0, 1), (1, 0)
    %q = apply %f(%r2, %r2) -> f32
    %q2 = apply %f(%q: f32, 1: f32): (f32, f32) -> f32
    %sm = builtin "softmax"(%x: <4 x 5 x f32>) -> <4 x 5 x f32>
    %k = rank of %x: <4 x 5 x f32>
    %bc = bitCast %x: <4 x 5 x f32> to <4 x 5 x i32>
    %rn = random 2 x 3 from 0: f32 upto 1: f32
    %p = allocateHeap ($S, [2 x f32]) count 3: i64
    %e = elementPointer %p: *($S, [2 x f32]) at 1, %k: i64
    %e2 = elementPointer %p: *($S, [2 x f32]) at 0, #t
    store ?node(?leaf(1: f32): $Tree, ?none: $Tree): $Tree to %e2: *$Tree
    %ld = load %e: *f32
    %n = literal null: *f32
    %u = literal undefined: $S
    %z = literal zero: ($O2, [3 x (f32, *i8)])
    %st = createStack
    push [1: f32, %ld: f32]: [2 x f32] to %st: stack
    %pp = pop [2 x f32] from %st: stack
    destroyStack %st: stack
    trap
    %bx = allocateBox $S
    retain %bx: box{$S}
    %res = literal (%u: $S, %pp: [2 x f32]): $Pair
    %in = insert 1.5: f32 to %res: $Pair at 1, 0
    return %in: $Pair
}
type $O2 = <2 x 2 x f32>
"""

TEXTS = {"slides": SLIDES, "families": FAMILIES, "scheduled": SCHEDULED, "whole": WHOLE}
