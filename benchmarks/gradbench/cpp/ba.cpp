// ba: the errors, and the values and columns of their Jacobian: one observation after the other, its 15 tangents at once.

#include <cmath>
#include <cstdint>

using Index = std::int64_t;

namespace {

constexpr int WIDTH = 15;  // camera 0 … 10, point 11 … 13, weight 14

struct Dual {
  double value = 0, slopes[WIDTH] = {};
  Dual(double v) : value(v) {}
  static Dual variable(double v, int which) {
    Dual x(v);
    x.slopes[which] = 1;
    return x;
  }
};

Dual combine(double value, double p, const Dual &x, double q, const Dual &y) {
  Dual z(value);
  for (int k = 0; k < WIDTH; ++k) z.slopes[k] = p * x.slopes[k] + q * y.slopes[k];
  return z;
}

Dual chain(double value, double p, const Dual &x) {
  Dual z(value);
  for (int k = 0; k < WIDTH; ++k) z.slopes[k] = p * x.slopes[k];
  return z;
}

Dual operator+(const Dual &x, const Dual &y) { return combine(x.value + y.value, 1, x, 1, y); }
Dual operator-(const Dual &x, const Dual &y) { return combine(x.value - y.value, 1, x, -1, y); }
Dual operator*(const Dual &x, const Dual &y) { return combine(x.value * y.value, y.value, x, x.value, y); }
Dual operator/(const Dual &x, const Dual &y) {
  double z = x.value / y.value;
  return combine(z, 1 / y.value, x, -z / y.value, y);
}
Dual sqrt(const Dual &x) { return chain(std::sqrt(x.value), 0.5 / std::sqrt(x.value), x); }
Dual sin(const Dual &x) { return chain(std::sin(x.value), std::cos(x.value), x); }
Dual cos(const Dual &x) { return chain(std::cos(x.value), -std::sin(x.value), x); }
double value_of(double x) { return x; }
double value_of(const Dual &x) { return x.value; }

template <class Number>
void project(const Number *camera, const Number *point, Number weight, const double *feature, Number *error) {
  using std::cos, std::sin, std::sqrt;
  const Number *r = camera;
  const Number x[3] = {point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]};
  const Number square = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
  const bool turned = value_of(square) != 0;
  const Number angle = turned ? sqrt(square) : Number(1);
  const Number a[3] = {r[0] / angle, r[1] / angle, r[2] / angle};
  const Number s = turned ? sin(angle) : Number(1), c = turned ? cos(angle) : Number(1);
  const Number along = (a[0] * x[0] + a[1] * x[1] + a[2] * x[2]) * (Number(1) - c);
  const Number y[3] = {x[0] * c + (a[1] * x[2] - a[2] * x[1]) * s + a[0] * along,
                       x[1] * c + (a[2] * x[0] - a[0] * x[2]) * s + a[1] * along,
                       x[2] * c + (a[0] * x[1] - a[1] * x[0]) * s + a[2] * along};
  const Number u = y[0] / y[2], v = y[1] / y[2], radius = u * u + v * v;
  const Number factor = camera[6] * (Number(1) + radius * (camera[9] + radius * camera[10]));
  error[0] = weight * (u * factor + camera[7] - Number(feature[0]));
  error[1] = weight * (v * factor + camera[8] - Number(feature[1]));
}

}  // namespace

extern "C" void objective(Index p, const double *cameras, const double *points, const double *weights,
                          const double *features, const Index *camera, const Index *point, double *errors,
                          double *of_weights) {
  for (Index i = 0; i < p; ++i) {
    project(cameras + 11 * camera[i], points + 3 * point[i], weights[i], features + 2 * i, errors + 2 * i);
    of_weights[i] = 1 - weights[i] * weights[i];
  }
}

extern "C" void jacobian(Index p, Index n, Index m, const double *cameras, const double *points, const double *weights,
                         const double *features, const Index *camera, const Index *point, double *values,
                         Index *columns, Index *begins) {
  for (Index i = 0; i < p; ++i) {
    Dual of_camera[11] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, of_point[3] = {0, 0, 0}, error[2] = {0, 0};
    for (int k = 0; k < 11; ++k) of_camera[k] = Dual::variable(cameras[11 * camera[i] + k], k);
    for (int k = 0; k < 3; ++k) of_point[k] = Dual::variable(points[3 * point[i] + k], 11 + k);
    project(of_camera, of_point, Dual::variable(weights[i], 14), features + 2 * i, error);
    for (int row = 0; row < 2; ++row) {
      double *to = values + (2 * i + row) * WIDTH;
      Index *at = columns + (2 * i + row) * WIDTH;
      for (int k = 0; k < WIDTH; ++k) to[k] = error[row].slopes[k];
      for (int k = 0; k < 11; ++k) at[k] = 11 * camera[i] + k;
      for (int k = 0; k < 3; ++k) at[11 + k] = 11 * n + 3 * point[i] + k;
      at[14] = 11 * n + 3 * m + i;
      begins[2 * i + row] = (2 * i + row) * WIDTH;
    }
    values[2 * WIDTH * p + i] = -2 * weights[i];
    columns[2 * WIDTH * p + i] = 11 * n + 3 * m + i;
    begins[2 * p + i] = 2 * WIDTH * p + i;
  }
  begins[3 * p] = (2 * WIDTH + 1) * p;
}
