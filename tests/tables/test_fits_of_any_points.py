"""Fits to all floats: numbers or a reason, and never a warning (warnings are errors)."""

from __future__ import annotations

from math import inf, isfinite

from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpc_train.tables.scaling_fits import fits
from tests.tables.test_scaling_fits import points


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(
            st.floats() | st.floats(0.5, 1e5),
            st.floats() | st.floats(0.1, 1e5),
            st.integers(0, 9),
            st.floats(min_value=0),
            st.floats(),
        ),
        max_size=9,
    ),
    st.sampled_from(["weak", "strong"]),
)
@example([(1.0, 1e-300, 1, 0, 0), (2.0, 1e300, 1, 0, 0), (4.0, 5e-324, 1, 0, 0)], "strong")
@example([(2.0**i, 0.9**i * 2.0**i, 3, 1e300, 0) for i in range(7)], "strong")
@example([(2.0**i, 0.9**i * 2.0**i, 3, 5e-324, 0) for i in range(7)], "weak")
def test_a_fit_to_any_points_is_of_numbers(
    places: list[tuple[float, float, int, float, float]], regime: str
) -> None:
    frame = points([one[0] for one in places], [one[1] for one in places], regime)
    for place, name in enumerate(("n_ok", "cv", "speedup_low"), start=2):
        frame[name] = [one[place] for one in places]
    for law in fits(frame, 64.0, force=True):
        assert law.lack_of_fit_p is None or 0 <= law.lack_of_fit_p <= 1
        assert law.aicc is None or isfinite(law.aicc)
        assert all(isfinite(parameter.value) for parameter in law.parameters)
        for at in law.curve:
            assert at.low is None or at.low <= at.speedup * (1 + 1e-9)
            assert 0 < at.speedup < inf
            assert at.high is None or at.speedup * (1 - 1e-9) <= at.high < inf
