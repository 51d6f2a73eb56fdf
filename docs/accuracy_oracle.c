/* Elementary and special functions in quad precision, and distances from them: what docs/generate_accuracy.py
 * measures against.  libquadmath has no digamma and no trigamma: they are raised to x ≥ 40 by recurrence and
 * summed there by their asymptotic series; x ≤ 0 by reflection.
 * Source: Abramowitz & Stegun 1964, 6.3.18, 6.4.12 and 6.3.7.
 */
#include <quadmath.h>
#include <string.h>

typedef __float128 quad;

/* B₂, B₄, … B₄₀ */
static const quad BERNOULLI[20] = {
    1.0Q / 6, -1.0Q / 30, 1.0Q / 42, -1.0Q / 30, 5.0Q / 66, -691.0Q / 2730, 7.0Q / 6, -3617.0Q / 510,
    43867.0Q / 798, -174611.0Q / 330, 854513.0Q / 138, -236364091.0Q / 2730, 8553103.0Q / 6,
    -23749461029.0Q / 870, 8615841276005.0Q / 14322, -7709321041217.0Q / 510, 2577687858367.0Q / 6,
    -26315271553053477373.0Q / 1919190, 2929993913841559.0Q / 6, -261082718496449122051.0Q / 13530,
};

static int is_pole(quad x) { return x <= 0 && x == rintq(x) && !isinfq(x); }

static quad digamma(quad x) {
  if (x == 0) return copysignq(1, x) < 0 ? HUGE_VALQ : -HUGE_VALQ;
  if (is_pole(x) || x == -HUGE_VALQ) return nanq("");
  if (x < 0) return digamma(1 - x) - M_PIq / tanq(M_PIq * (x - rintq(x)));
  quad total = 0;
  for (; x < 40; x += 1) total -= 1 / x;
  quad z = 1 / (x * x), power = z, series = 0;
  for (int k = 0; k < 20; k++, power *= z) series += BERNOULLI[k] / (2 * (k + 1)) * power;
  return total + logq(x) - 0.5Q / x - series;
}

static quad trigamma(quad x) {
  if (is_pole(x)) return HUGE_VALQ;
  if (x == -HUGE_VALQ) return nanq("");
  if (x < 0) {
    quad cosecant = M_PIq / sinq(M_PIq * (x - rintq(x)));
    return cosecant * cosecant - trigamma(1 - x);
  }
  quad total = 0;
  for (; x < 40; x += 1) total += 1 / (x * x);
  quad z = 1 / (x * x), power = z / x, series = 0;
  for (int k = 0; k < 20; k++, power *= z) series += BERNOULLI[k] * power;
  return total + 1 / x + 0.5Q * z + series;
}

static quad lgamma_or_pole(quad x) { return isinfq(x) || is_pole(x) ? HUGE_VALQ : lgammaq(x); }
static quad rsqrt(quad x) { return 1 / sqrtq(x); }
static quad logistic(quad x) {
  quad small = expq(-fabsq(x));
  return (x < 0 ? small : 1) / (1 + small);
}

/* Functions that are composed of others. */
static quad sinc(quad x) {
  quad whole = rintq(x), sine = sinq(M_PIq * (x - whole));
  sine = x - whole == 0 ? 0 : fmodq(whole, 2) != 0 ? -sine : sine; /* a root has the sign of x */
  return x == 0 ? 1 : sine / (M_PIq * x);
}
static quad softplus(quad x) { return (x < 0 ? 0 : x) + log1pq(expq(-fabsq(x))); }
static quad log_sigmoid(quad x) { return -softplus(-x); }
static quad silu(quad x) { return x == -HUGE_VALQ ? -0.0Q : x * logistic(x); }
static quad gelu(quad x) { return x == -HUGE_VALQ ? -0.0Q : 0.5Q * x * erfcq(-x * M_SQRT1_2q); }
static quad mish(quad x) { return x == -HUGE_VALQ ? -0.0Q : x * tanhq(softplus(x)); }
static quad log_of_sum(quad x, quad y) {
  return x == y && isinfq(x) ? x : fmaxq(x, y) + log1pq(expq(-fabsq(x - y)));
}

typedef struct {
  const char *name;
  quad (*function)(quad);
} entry;

static const entry FUNCTIONS[] = {
    {"sqrt", sqrtq},   {"rsqrt", rsqrt},       {"exp", expq},         {"expm1", expm1q},
    {"log", logq},     {"log1p", log1pq},      {"sin", sinq},         {"cos", cosq},
    {"tan", tanq},     {"asin", asinq},        {"acos", acosq},       {"atan", atanq},
    {"sinh", sinhq},   {"cosh", coshq},        {"tanh", tanhq},       {"asinh", asinhq},
    {"acosh", acoshq}, {"atanh", atanhq},      {"logistic", logistic}, {"erf", erfq},
    {"erfc", erfcq},   {"lgamma", lgamma_or_pole}, {"digamma", digamma}, {"trigamma", trigamma},
    {"exp2", exp2q},   {"log2", log2q},        {"log10", log10q},     {"cbrt", cbrtq},
    {"sinc", sinc},    {"sigmoid", logistic},  {"softplus", softplus}, {"log_sigmoid", log_sigmoid},
    {"silu", silu},    {"gelu", gelu},         {"mish", mish},
};

static const struct {
  const char *name;
  quad (*function)(quad, quad);
} OF_TWO[] = {{"power", powq}, {"hypot", hypotq}, {"atan2", atan2q}, {"logaddexp", log_of_sum}};

/* out[i] = name(x[i]), or of x[i] and y[i]; -1 for a name that is not there */
int evaluate(const char *name, long count, const double *x, const double *y, quad *out) {
  for (unsigned k = 0; k < sizeof OF_TWO / sizeof *OF_TWO; k++)
    if (!strcmp(name, OF_TWO[k].name)) {
      for (long i = 0; i < count; i++) out[i] = OF_TWO[k].function(x[i], y[i]);
      return 0;
    }
  for (unsigned k = 0; k < sizeof FUNCTIONS / sizeof *FUNCTIONS; k++)
    if (!strcmp(name, FUNCTIONS[k].name)) {
      for (long i = 0; i < count; i++) out[i] = FUNCTIONS[k].function(x[i]);
      return 0;
    }
  return -1;
}

/* The nearest doubles, and what is left of each. */
void parts(long count, const quad *exact, double *high, double *low) {
  for (long i = 0; i < count; i++) {
    high[i] = exact[i];
    low[i] = isinfq(exact[i]) || high[i] - high[i] != 0 ? 0 : exact[i] - high[i];
  }
}

/* |result − exact| in units in the last place of exact, in a format of `digits` bits with exponents from `least`
 * to `greatest`, or in units of slack[i] where that is larger.  An infinity counts as the power of two
 * at which the format ends; infinite where NaN or the sign of a zero is wrong. */
void distances(long count, const quad *exact, const double *result, const double *slack, int digits, int least,
               int greatest, double *out) {
  const quad end = ldexpq(1, greatest);
  for (long i = 0; i < count; i++) {
    quad e = exact[i], r = result[i];
    if (isnanq(e) || isnanq(r)) {
      out[i] = isnanq(e) && isnanq(r) ? 0 : HUGE_VALQ;
      continue;
    }
    if (signbitq(e) != signbitq(r) && (e == 0 || (r == 0 && fabsq(e) < ldexpq(1, least - digits)))) {
      out[i] = HUGE_VALQ;
      continue;
    }
    if (fabsq(e) > end) e = copysignq(end, e);
    if (fabsq(r) > end) r = copysignq(end, r);
    int exponent;
    frexpq(e, &exponent);
    if (exponent > greatest) exponent = greatest;
    quad unit = ldexpq(1, (e == 0 || exponent < least ? least : exponent) - digits);
    if (slack && slack[i] > unit) unit = slack[i];
    out[i] = fabsq(r - e) / unit;
  }
}
