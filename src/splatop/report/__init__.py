"""The report: one HTML page about evaluated runs, complete in itself."""

from .page import Report as Report
from .page import write_report as write_report
