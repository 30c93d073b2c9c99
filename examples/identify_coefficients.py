"""Unknown coefficients from the first seven frames of a trajectory, with intervals."""

import splatop


def main(points: int = 64, trajectories: int = 3) -> float:
    problem = splatop.get_benchmark("unknown_advection_diffusion2d")
    data = splatop.generate(
        problem, split="test", trajectories=trajectories, steps=7, points=points
    )
    worst = 0.0
    for index, found in enumerate(splatop.identify_trajectories(problem.equation, None, data)):
        for name, estimate in found.estimates.items():
            low, high = found.intervals[name]
            true = float(data.coefficients[name][index])
            worst = max(worst, abs(estimate / true - 1))
            print(f"{index}: {name} = {estimate:.6g} in [{low:.6g}, {high:.6g}], true {true:.6g}")
    return worst


if __name__ == "__main__":
    main()
