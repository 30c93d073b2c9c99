"""Where should the next sensors stand?

Twelve places in a channel with an inflow are chosen one after the other, each where its reports
lower the expected spread of the field most.
"""

import splatop

SENSORS = 12

placed = splatop.place(
    "dt(u) = -v*dx(u) + D*lap(u)",
    sensors=SENSORS,
    coefficients={"v": 0.5, "D": 0.005},
    boundary="x0: u = 0; x1: dn(u) = 0; y: dn(u) = 0",
    lengths=(2.0, 1.0),
    points=(40, 20),
    dt=0.1,
)

found = {"spread before": placed.expected[0], f"with {SENSORS} sensors": placed.expected[-1]}
error = placed.expected[-1] / placed.expected[0]
pictures = {"expected spread that is left, and the places": placed.spread[0]}
marks = placed.places / (2, 1)
