"""What a dozen sample states tell of the spectrum of others."""

import numpy as np

from splatop.assimilate.spectra import prior_of_samples
from splatop.domain import Domain
from splatop.spaces import BoxSpace

BAND, SAMPLES = 6, 12
SPACE = BoxSpace(Domain.box((1.0, 1.0)), ("u",), (BAND, BAND))
WAVES = (np.arange(2 * BAND + 1) + 1) // 2
KX, KY = np.meshgrid(WAVES, WAVES, indexing="ij")


def drawn(std):
    rng = np.random.default_rng(0)
    return std * rng.normal(size=(SAMPLES, 1, *KX.shape))


def test_modes_that_no_sample_has_are_not_expected():
    inside = np.maximum(KX, KY) <= 3  # of the wavelength of (3, 3) there are others outside
    found = prior_of_samples(drawn(inside * 1.0), SPACE, "a test").std[0]
    assert found[~inside].max() < 1e-3
    # Four alike, twelve samples: a variance is off by sqrt(2 / 48) = 20 %, on an axis by 29 %,
    # alone by 41 %; four of these are 160 % at most.
    assert np.abs(found[inside] ** 2 - 1).max() < 1.6


def test_modes_of_one_wavelength_that_differ_by_chance_alone_are_averaged():
    true = 1 / (1 + np.hypot(KX, KY)) ** 2
    found = prior_of_samples(drawn(true), SPACE, "a test").std[0]
    off = (found / true) ** 2 - 1
    # Each by itself is off by 20 % or more. A shell holds about four kinds, and its wavelengths
    # differ by half a step, which is 10 % of a variance there.
    inner = (np.hypot(KX, KY) > 2) & (np.hypot(KX, KY) < BAND)
    assert np.sqrt(np.mean(off[inner] ** 2)) < 0.17


def test_the_mean_of_a_field_is_as_uncertain_as_it_changes_and_as_sensors_miss():
    from splatop import Observations
    from splatop.assimilate.expected import _told_means

    moments = np.repeat(np.arange(40), 10)
    places = np.tile((np.arange(10) + 0.5) / 10, 40)

    def told(values):
        obs = Observations(moments * 0.1, places, "u", values, sigma=0.1)
        return _told_means(obs, moments)["u"]

    steady = 3 + np.sin(2 * np.pi * places)
    # Means of sensors have a standard deviation of sqrt(1 / 2): a tenth of the variance is left.
    assert np.allclose(told(steady), (3, np.sqrt(0.5 / 10)))
    # A mean that rises from 0 to 39 is 19.5 from its first value; the first of eight parts is at 2.
    mean, far = told(moments.astype(float))
    assert mean == 19.5
    assert far > 17.5


def test_a_cloud_narrower_than_the_gaps_between_sensors_is_no_noise():
    """A pulse that drifts past eight sensors: one or two of them see it at a time, which looks like
    noise from place to place, but each sees it come and go smoothly."""
    from splatop import Observations
    from splatop.assimilate.prior import _most_noise, fit_smoothness

    places = np.array([0.8, 1.5, 2.5, 3.6, 4.8, 6.1, 7.5, 9.0])
    t, x = np.repeat(0.1 * np.arange(61), 8), np.tile(places, 61)
    rng = np.random.default_rng(0)
    pulse = 50 * np.exp(-(((x - 1.5 - 1.2 * t) / 0.35) ** 2))
    held = Observations(t, x, "u", pulse + 0.3 * rng.normal(size=len(t)))
    space = BoxSpace(Domain.box((10.0,), periodic=(False,)), ("u",), (64,))
    found = fit_smoothness(held, np.round(t / 0.1).astype(int), space, as_likely=1.0)["u"]
    assert found.noise < 2  # of a field of 50; all of its spread of 11 counted as noise
    assert found.length < 1
    # Of what is nothing but noise as much is allowed as there is, and some more.
    assert 1.1 < _most_noise(Observations(t, x, "u", rng.normal(size=len(t)))) < 1.5
