/* The functions of floats in double, for all 2³² floats of 32 bits: what docs/generate_accuracy.py takes for the truth
 * of f32 where quad precision would take days.  glibc's vectors of doubles are good to 4 units of a double, which is
 * 10⁻⁸ of a float's.
 *
 * The declarations are written here, and not math.h's, so that OpenMP finds the variants of libmvec.
 */
#include <stdint.h>
#include <string.h>

#define EACH _Pragma("omp simd")
#define OF_VECTORS(name) _Pragma("omp declare simd notinbranch") double name(double);

OF_VECTORS(exp) OF_VECTORS(expm1) OF_VECTORS(log) OF_VECTORS(log1p) OF_VECTORS(sin) OF_VECTORS(cos) OF_VECTORS(tan)
OF_VECTORS(asin) OF_VECTORS(acos) OF_VECTORS(atan) OF_VECTORS(sinh) OF_VECTORS(cosh) OF_VECTORS(tanh)
OF_VECTORS(asinh) OF_VECTORS(acosh) OF_VECTORS(atanh) OF_VECTORS(erf) OF_VECTORS(erfc) OF_VECTORS(exp2)
OF_VECTORS(log2) OF_VECTORS(log10) OF_VECTORS(cbrt)
double sqrt(double), fabs(double), rint(double), copysign(double, double), lgamma(double);

/* Beyond, functions of exponentials are what they are there, to a float; libmvec would take its time. */
static inline double within(double x, double end) { return x > end ? end : x < -end ? -end : x; }

static const double PI = 3.14159265358979323846, INFINITY_ = __builtin_inf(), NAN_ = __builtin_nan("");

/* |x| far below 1 and above 16 are left as they are; what is left of the asymptotic series is below 10⁻¹⁷. */
enum { STEPS = 12 };
static const double BERNOULLI[8] = {1.0 / 6, -1.0 / 30, 1.0 / 42, -1.0 / 30, 5.0 / 66, -691.0 / 2730, 7.0 / 6,
                                    -3617.0 / 510};

static inline double digamma_above_zero(double x) {
  double total = 0;
  for (int k = 0; k < STEPS; k++) {
    total -= x < STEPS ? 1 / x : 0;
    x += x < STEPS ? 1 : 0;
  }
  double z = 1 / (x * x), power = z, series = 0;
  for (int k = 0; k < 8; k++, power *= z) series += BERNOULLI[k] / (2 * (k + 1)) * power;
  return total + log(x) - 0.5 / x - series;
}

static inline double trigamma_above_zero(double x) {
  double total = 0;
  for (int k = 0; k < STEPS; k++) {
    total += x < STEPS ? 1 / (x * x) : 0;
    x += x < STEPS ? 1 : 0;
  }
  double z = 1 / (x * x), power = z / x, series = 0;
  for (int k = 0; k < 8; k++, power *= z) series += BERNOULLI[k] * power;
  return total + 1 / x + 0.5 * z + series;
}

static inline double digamma(double x) {
  double distance = x - rint(x), positive = digamma_above_zero(x < 0 ? 1 - x : x);
  double result = x < 0 ? positive - PI * cos(PI * distance) / sin(PI * distance) : positive;
  result = x == INFINITY_ ? x : result;
  result = x < 0 && distance == 0 ? NAN_ : result;
  return x == 0 ? copysign(INFINITY_, -x) : result;
}

static inline double trigamma(double x) {
  double distance = x - rint(x), positive = trigamma_above_zero(x < 0 ? 1 - x : x);
  double cosecant = PI / sin(PI * distance);
  double result = x < 0 ? cosecant * cosecant - positive : positive;
  result = x == INFINITY_ ? 0 : result;
  return x <= 0 && distance == 0 ? INFINITY_ : result;
}

static inline double rsqrt(double x) { return 1 / sqrt(x); }
static inline double logistic(double x) {
  double small = exp(-fabs(within(x, 200)));
  return (x < 0 ? small : 1) / (1 + small);
}
static inline double lgamma_(double x) {
  return fabs(x) == INFINITY_ || (x <= 0 && x == rint(x)) ? INFINITY_ : lgamma(x);
}

static inline double sinc(double x) {
  double whole = rint(x), half = 0.5 * whole, sine = sin(PI * (x - whole));
  sine = x - whole == 0 ? 0 : half != rint(half) ? -sine : sine; /* a root has the sign of x */
  return x == 0 ? 1 : sine / (PI * x);
}
static inline double softplus(double x) { return (x < 0 ? 0 : x) + log1p(exp(-fabs(x))); }
static inline double log_sigmoid(double x) { return -softplus(-x); }
static inline double silu(double x) { return x == -INFINITY_ ? -0.0 : x * logistic(x); }
static inline double gelu(double x) { return x == -INFINITY_ ? -0.0 : 0.5 * x * erfc(x * -0.70710678118654752440); }
/* tanh(log(1 + e)) = ((1 + e)² - 1) / ((1 + e)² + 1) */
static inline double mish(double x) {
  double e = exp(x > 40 ? 40 : x), above = e * (e + 2);
  return x == -INFINITY_ ? -0.0 : x * (above / (above + 2));
}

static inline double exp_(double x) { return exp(within(x, 200)); }
static inline double expm1_(double x) { return expm1(within(x, 200)); }
static inline double sinh_(double x) { return sinh(within(x, 200)); }
static inline double cosh_(double x) { return cosh(within(x, 200)); }
static inline double erfc_(double x) { return erfc(within(x, 20)); }
static inline double log_(double x) { return x < 0 ? NAN_ : log(fabs(x)); }

#define LOOPS \
  LOOP(sqrt) LOOP(rsqrt) LOOP(exp_) LOOP(expm1_) LOOP(log_) LOOP(log1p) LOOP(sin) LOOP(cos) LOOP(tan) LOOP(asin) \
  LOOP(acos) LOOP(atan) LOOP(sinh_) LOOP(cosh_) LOOP(tanh) LOOP(asinh) LOOP(acosh) LOOP(atanh) LOOP(logistic) \
  LOOP(erf) LOOP(erfc_) LOOP(lgamma_) LOOP(digamma) LOOP(trigamma) LOOP(exp2) LOOP(log2) LOOP(log10) LOOP(cbrt) \
  LOOP(sinc) LOOP(softplus) LOOP(log_sigmoid) LOOP(silu) LOOP(gelu) LOOP(mish)

#define LOOP(name) \
  void all_##name(long count, const float *x, double *out) { \
    EACH for (long i = 0; i < count; i++) out[i] = name(x[i]); \
  }
LOOPS

#undef LOOP
#define LOOP(name) {#name, all_##name},
static const struct {
  const char *name;
  void (*loop)(long, const float *, double *);
} FUNCTIONS[] = {LOOPS};

/* out[i] = name(x[i]); -1 for a name that is not there */
static int evaluate(const char *name, long count, const float *x, double *out) {
  for (unsigned k = 0; k < sizeof FUNCTIONS / sizeof *FUNCTIONS; k++)
    if (!strcmp(name, FUNCTIONS[k].name)) {
      FUNCTIONS[k].loop(count, x, out);
      return 0;
    }
  return -1;
}

static inline int64_t bits_of(double x) {
  int64_t bits;
  memcpy(&bits, &x, 8);
  return bits;
}

/* One over a unit in the last place of x as a float. */
static inline double per_unit(double x) {
  int64_t exponent = bits_of(x) >> 52 & 2047, least = 1023 - 126, greatest = 1023 + 127;
  exponent = exponent > greatest ? greatest : exponent;
  exponent = exponent < least ? least : exponent;
  int64_t bits = (2046 - exponent + 23) << 52;
  double result;
  memcpy(&result, &bits, 8);
  return result;
}

/* |result − exact| in units in the last place of exact; an infinity counts as 2¹²⁸; infinite where NaN or the sign of
 * a zero is wrong. */
static inline double distance(double exact, double result) {
  double e = exact > 0x1p128 ? 0x1p128 : exact, r = result > 0x1p128 ? 0x1p128 : result;
  e = e < -0x1p128 ? -0x1p128 : e;
  r = r < -0x1p128 ? -0x1p128 : r;
  double error = fabs(r - e) * per_unit(e);
  /* a zero where the exact result is one, or less than the least float */
  double least = result == 0 ? 0x1p-149 : 0;
  double size = fabs(exact);
  error = bits_of(exact) >> 63 != bits_of(result) >> 63 ? (size == 0 ? INFINITY_ : error) : error;
  error = bits_of(exact) >> 63 != bits_of(result) >> 63 ? (size < least ? INFINITY_ : error) : error;
  error = exact != exact ? INFINITY_ : error;
  error = result != result ? (exact != exact ? 0 : INFINITY_) : error;
  return error;
}

/* The largest of the distances; and where it is, if it is above `found`, which is left alone else. */
static double worst(long count, const double *exact, const float *result, double found, long *at) {
  double greatest = 0;
  _Pragma("omp simd reduction(max : greatest)") for (long i = 0; i < count; i++) {
    double error = distance(exact[i], result[i]);
    greatest = error > greatest ? error : greatest;
  }
  if (greatest <= found) return found;
  for (*at = 0; distance(exact[*at], result[*at]) < greatest;) ++*at;
  return greatest;
}

/* How many of the floats differ in a bit; all NaNs are one. */
static long different(long count, const float *x, const float *y) {
  long found = 0;
  _Pragma("omp simd reduction(+ : found)") for (long i = 0; i < count; i++) {
    uint32_t one, other;
    memcpy(&one, x + i, 4);
    memcpy(&other, y + i, 4);
    found += (one != other) & ((x[i] == x[i]) | (y[i] == y[i]));
  }
  return found;
}

/* A loop of compiled code: results of operands. */
typedef void way(const float *operand, float *result, int64_t count);

enum { BLOCK = 4096, WAYS = 8, COMPARED = 16 };

/* Of a function at `count` floats from the bits `first` on, and at their negatives: for each way the largest of the
 * distances, and the operand there; for a way with a `same`, in one block of COMPARED, how many floats differ from
 * those of that way before it, all NaNs being one.  `parity` is 1 of an even function, -1 of an odd one, whose exact
 * results are computed once for both, else 0.  -1 if there is no function of that name. */
int examine(const char *name, int parity, uint32_t first, long count, int ways, way *const *way_of, const int *same,
            double *greatest, float *place) {
  _Alignas(64) static float x[BLOCK], results[WAYS][BLOCK];
  _Alignas(64) static double exact[BLOCK];
  for (long block = 0; block < 2 * count / BLOCK; block++) {
    uint32_t start = first + (uint32_t)(block / 2) * BLOCK, sign = (uint32_t)(block % 2) << 31;
    for (uint32_t i = 0; i < BLOCK; i++) {
      uint32_t bits = (start + i) | sign;
      memcpy(x + i, &bits, 4);
    }
    if (!sign || !parity) {
      if (evaluate(name, BLOCK, x, exact)) return -1;
    } else if (parity < 0) {
      for (int i = 0; i < BLOCK; i++) exact[i] = -exact[i];
    }
    for (int k = 0; k < ways; k++) {
      if (same[k] >= 0 && block / 2 % COMPARED) continue;
      way_of[k](x, results[k], BLOCK);
      if (same[k] >= 0) {
        greatest[k] += (double)different(BLOCK, results[same[k]], results[k]);
        continue;
      }
      long at = -1;
      greatest[k] = worst(BLOCK, exact, results[k], greatest[k], &at);
      if (at >= 0) place[k] = x[at];
    }
  }
  return 0;
}
