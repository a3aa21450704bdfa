"""Letters of time zones, and words for the halves of a day, that stand beside times in logs."""

from __future__ import annotations

from typing import Final

ZONES: Final = (
    "Europe/Berlin", "Europe/London", "Europe/Moscow", "Europe/Helsinki", "Europe/Lisbon",
    "Europe/Dublin", "America/New_York", "America/Chicago", "America/Denver",
    "America/Los_Angeles", "America/Anchorage", "America/Halifax", "America/St_Johns",
    "America/Havana", "Pacific/Honolulu", "Pacific/Pago_Pago", "Pacific/Guam",
    "Pacific/Auckland", "Asia/Kolkata", "Asia/Jerusalem", "Asia/Shanghai", "Asia/Hong_Kong",
    "Asia/Tokyo", "Asia/Seoul", "Asia/Karachi", "Asia/Manila", "Asia/Jakarta", "Asia/Makassar",
    "Asia/Jayapura", "Australia/Sydney", "Australia/Adelaide", "Australia/Perth",
    "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi", "Africa/Maputo", "Africa/Algiers",
    "Europe/Kaliningrad", "America/Panama", "America/Regina", "America/Phoenix",
    "America/Puerto_Rico", "Australia/Brisbane", "Australia/Darwin",
)  # fmt: skip
"""For each zone whose clocks show letters, the zone that most people know; at the end, zones that
have no summer time. Letters of different zones may be equal (CST)."""

USED: Final = (
    "ACDT ACST ADT AEDT AEST AKDT AKST AST AWST BST CAT CDT CEST CET CHST CST EAT EDT EEST EET EST "
    "HDT HKT HST IDT IST JST KST MDT MEST MESZ MET MEZ MSK MST NDT NST NZDT NZST PDT PKT PST SAST "
    "SST WAST WAT WEST WET WIB WIT WITA"
)
_FORMER: Final = (
    "ALMT AMST AMT ANAT AQTT AZST AZT BDT BNT BRST BRT BTT CLST CLT CVT EGST FJT GALT GST HOVT ICT "
    "IRDT IRKT IRST KGT KRAT LHDT LHST MAGT MART MSD MUT MVT MYT NFT NOVT NPT NUT OMST ORAT PETT "
    "PGT PHT PMST PWT PYST PYT SAKT SAMT SBT SCT SGT SRET SRT TFT TJT TKT TLT TMT ULAT UYST UYT "
    "UZT VET VLAT VOLT VUT WGST WGT YAKT YEKT"
)
PATTERN: Final = f"(?:{'|'.join([*USED.split(), *_FORMER.split()])})"
"""A regular expression for the letters of zones, also of those that no clocks show any more."""

SHOWN: Final = (
    "(?:(?:A[CEKW]?|NZ?|[CEHIMP])[DS]T|(?:[BJKS]|CH|[CEMW]E|SA|WA)ST|[CEMW]ET|[CEW]AT|MES?Z|MSK"
    "|[HP]KT|WI(?:B|TA?))"
)
"""A shorter regular expression, for the letters that clocks show today."""

REGION: Final = (
    r"(?:(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Etc|Europe|Indian|Pacific|US)"
    r"/[A-Z][\w/+-]*|[A-Z]{3}\d[A-Z]{3})"
)
IN_WORDS: Final = (
    r"(?:[A-Z][a-z]+ ){0,3}(?:Standard|Daylight|Summer|European|Universal|Mean|Moscow) Time\b"
)
HALVES: Final = (
    r"[ap]\.?\s?m\b|[ap]mZ\b|π\.?\s?μ|μ\.?\s?μ|上午|下午|午前|午後|오전|오후|(?:SA|CH|PTG|PG|fm|em)\b|[fe]\.m\b"
    r"|öö\b|ös\b|(?:ap|ip|dop|odp|vorm|nachm|de|du)\.|пр\.|сл\.|ق\.|ب\.|[صم]\b|पूर्वाह्न|अपराह्न"
)
"""A regular expression for the words that languages have for the halves of a day."""
