"""Find a planet's orbit from angles: derivatives go through Newton's method and its `while_loop`.

Kepler's equation, E - e sin E = M, has no closed solution.  Newton's method finds E for each of the
times, in as many iterations as each needs; the fit differentiates that by eccentricity and phase.
"""

import sys
from pathlib import Path

import numpy as np
from curves import Array, draw_curves

import nnkit as nk
from nnkit import Bool, Rep, Scalar, Tensor1D, f64

HERE = Path(__file__).parent
TRUTH: Array = np.array([0.6, 0.4])  # eccentricity, phase
NOISE = 0.01  # of the angles, in radians

Number = Scalar[f64]
Vector = Tensor1D[f64]


@nk.staged
def anomaly(e: Rep[Number], m: Rep[Number]) -> Rep[Number]:
    """The E of Kepler's equation, to the last bits."""

    def far(root: Rep[Number]) -> Rep[Bool]:
        return abs(root - e * nk.sin(root) - m) > 1e-13

    def step(root: Rep[Number]) -> Rep[Number]:
        return root - (root - e * nk.sin(root) - m) / (1 - e * nk.cos(root))

    return nk.while_loop(far, step, m + 0.85 * e)


@nk.staged
def angles(orbit: Rep[Vector], times: Rep[Vector]) -> Rep[Vector]:
    """Half the angle from the nearest point of the orbit, as the sun sees it, at each of the times."""
    e = orbit[0]
    ratio = nk.sqrt((1 + e) / (1 - e))
    return times.map(lambda t: nk.atan(ratio * nk.tan(anomaly(e, t + orbit[1]) / 2)))


@nk.staged
def implicit(e: Rep[Number], m: Rep[Number]) -> Rep[Number]:
    """dE/de by the implicit function theorem, to compare with."""
    root = anomaly(e, m)
    return nk.sin(root) / (1 - e * nk.cos(root))


by_e = nk.gradient(of=anomaly, wrt=0)
slopes = nk.jacobian(of=angles, wrt=0)  # a column for each of two parameters: forward mode


def main() -> None:
    for e, m in ((0.1, 1.0), (0.6, 0.3), (0.95, 0.05)):
        found, expected = float(by_e(f64(e), f64(m))), float(implicit(f64(e), f64(m)))
        print(f"dE/de at e = {e}, M = {m}: {found:.11f}, by the theorem {expected:.11f}")
        assert abs(found - expected) < 1e-9

    rng = np.random.default_rng(0)
    when: Array = np.sort(rng.uniform(-2.8, 2.2, 100))
    times = Tensor1D(when, f64)
    seen = angles(Tensor1D(TRUTH, f64), times).numpy() + NOISE * rng.normal(size=when.shape)
    orbit: Array = np.array([0.1, 0.0])
    orbits: dict[str, tuple[Array, Array]] = {}
    turn: Array = np.linspace(0, 2 * np.pi, 400)
    for _ in range(8):  # Gauss and Newton
        here = Tensor1D(orbit, f64)
        slope, error = slopes(here, times).numpy(), angles(here, times).numpy() - seen
        orbit = orbit - np.linalg.solve(slope.T @ slope, slope.T @ error)
        e = orbit[0]
        orbits[f"e = {e:.4f}"] = np.cos(turn) - e, np.sqrt(1 - e * e) * np.sin(turn)
    radius: Array = (1 - orbit[0] ** 2) / (1 + orbit[0] * np.cos(2 * seen))
    dots = {"seen": (radius * np.cos(2 * seen), radius * np.sin(2 * seen))}
    draw_curves(HERE / "out/kepler.png", "Fits of an orbit", orbits, dots, aspect="equal")
    print(f"eccentricity {orbit[0]:.4f}, phase {orbit[1]:.4f} from {len(when)} angles")
    sys.exit(0 if np.allclose(orbit, TRUTH, atol=NOISE) else "that is not the orbit")


if __name__ == "__main__":
    main()
