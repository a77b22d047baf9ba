"""Curves of probabilities against labels, with bands from resampling responses."""

from __future__ import annotations

from calibration.curves.corp import CorpCurve, corp_curve
from calibration.curves.groups import GroupCalibration, group_calibration
from calibration.curves.reliability_bins import ReliabilityBins, reliability_bins
from calibration.curves.risk import RiskCurve, risk_curve

__all__ = [
    "CorpCurve",
    "GroupCalibration",
    "ReliabilityBins",
    "RiskCurve",
    "corp_curve",
    "group_calibration",
    "reliability_bins",
    "risk_curve",
]
