"""Reads the parameters of an address. If a parameter cannot be read, the functions of this module
raise an HTTPException with status 400 and one sentence.
"""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request

from skidway.audit.collector.pages.grid import UNITS

TEXT_MAX = 200


def number(request: Request, name: str) -> int | None:
    """Returns the value of a parameter that is a number; None if the parameter is missing."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        found = int(text)
    except ValueError as error:
        raise HTTPException(400, f"{name} must be a number of milliseconds") from error
    if abs(found) >= 1 << 61:
        raise HTTPException(400, f"{name} is beyond all times")
    return found


def unit(request: Request) -> str:
    """Returns the unit of the grid's columns: minute, hour or day."""
    found = request.query_params.get("by", "minute")
    if found not in UNITS:
        raise HTTPException(400, f"by must be one of {', '.join(UNITS)}")
    return found


def text(request: Request, name: str = "q") -> str:
    """Returns the text to look for, without blanks around it."""
    found = request.query_params.get(name, "").strip()
    if len(found) > TEXT_MAX:
        raise HTTPException(400, f"{name} must have at most {TEXT_MAX} characters")
    return found
