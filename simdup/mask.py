"""Noise that tells apart pages which say the same: dates, identifiers, counters; and texts without it.

`mask` is the definition: every match of one pattern becomes a space, so that words never weld; of a counter only the
number does, for its word is the page's. The pattern is of UTF-8 bytes, so that no Unicode table of Python's takes
part. It knows ASCII letters in either case, others as the default normalisation writes them. The fast way,
`without_noise`, tries the same pattern only where a match can start: at the first three bytes of one, near a digit.

- date: a day with its year or a time, or a time alone. "2026", "3 May", "12/25" and "1.2.3" stay, and so does a time
  of one digit ("3:16") unless seconds, am, pm, Uhr or a zone follow.
- epoch: 10 or 13 digits that start with 1 and are no part of a longer number or a decimal.
- hex: 32 hexadecimal digits or more, letters and figures both.
- jwt, uuid: as they are defined, but for one without a figure near its start.
- counter: a number at a word such as views or comments, in English, German, Chinese and Japanese.

With all masks, fingerprinting takes 1.6 times as long on text without figures, 2 to 3 times on English prose and
licences and on Chinese, 7 on pages dense with dates and 9 on logs (one thread, two-core Xeon).
"""

import functools
import re
from collections.abc import Container, Iterable, Sequence
from itertools import product
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from simdup.jit import kernel

Noise = Literal["counter", "date", "epoch", "hex", "jwt", "uuid"]
NOISE: tuple[Noise, ...] = get_args(Noise)

VERSION = 1
"""What a pattern matches never changes under the same number: it is part of `Scheme.id`."""

# Every match has a digit among so many bytes from its start; so many digits are as good as more.
_REACH, _MANY = 48, 15

# A sort of match: of which noise, how many digits it starts with, and what it looks like; a group is all that goes.
# What is not ASCII has several bytes, so it stands in no brackets and before no quantifier.
_Choice = tuple[Noise, Container[int], str]

_MONTHS = (
    "january february march april may june july august september october november december "
    "jan feb mar apr jun jul aug sep sept oct nov dec "
    "januar jänner februar märz mai juni juli oktober dezember mär mrz okt dez "
    "janvier février mars avril juin juillet août septembre octobre novembre décembre janv févr avr juil déc "
    "enero febrero marzo abril mayo junio julio agosto septiembre setiembre octubre noviembre diciembre "
    "ene abr ago dic gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre gen mag giu lug set ott "
    "janeiro fevereiro março maio junho julho setembro outubro novembro dezembro fev out "
    "januari februari maart mei augustus mrt "
    "ocak şubat nisan mayıs haziran temmuz ağustos eylül ekim kasım kasim aralık aralik "
    "января февраля марта апреля мая июня июля августа сентября октября ноября декабря"
)
_DAYS = (
    "monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun "
    "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag "
    "lundi mardi mercredi jeudi vendredi samedi dimanche lun mar mer jeu ven sam dim "
    "lunes martes miércoles jueves viernes sábado domingo mié jue vie sáb dom "
    "lunedì martedì mercoledì giovedì venerdì sabato domenica gio sab "
    "segunda-feira terça-feira quarta-feira quinta-feira sexta-feira seg ter qua qui sex "
    "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag "
    "pazartesi salı sali çarşamba perşembe cuma cumartesi pazar "
    "понедельник вторник среда четверг пятница суббота воскресенье"
)
_SHORT_DAYS = "mo. di. mi. do. fr. sa. so. ma. wo. vr. za. zo. пн. вт. ср. чт. пт. сб. вс."
_ZONES = (
    "z ut utc gmt bst cet cest eet eest msk est edt cst cdt mst mdt pst pdt akst akdt hst "
    "jst kst hkt sgt aest aedt acst acdt awst nzst nzdt brt sast"
)
_ERAS = "令和 平成 昭和"
_HALVES = "上午 下午 凌晨 早上 晚上 中午 午前 午後 오전 오후"
_COUNTED = (
    "view views viewed pageview pageviews visit visits visitor visitors hit hits click clicks read reads "
    "download downloads comment comments reply replies answer answers like likes dislike dislikes upvote upvotes "
    "vote votes share shares reaction reactions retweet retweets repost reposts bookmark bookmarks "
    "favorite favorites favourite favourites follower followers subscriber subscribers "
    "aufruf aufrufe zugriff zugriffe besucher besuche klick klicks leser kommentar kommentare antwort antworten "
    "stimme stimmen abonnent abonnenten"
)
_COUNTED_CJK = (
    "浏览 瀏覽 阅读 閱讀 评论 評論 点赞 點讚 赞 讚 收藏 转发 轉發 分享 回复 回復 回覆 回帖 跟帖 留言 "
    "下载 下載 播放 点击 點擊 访问 訪問 访客 訪客 查看 观看 觀看 人气 人氣 粉丝 粉絲 投票 "
    "閲覧 視聴 再生 いいね コメント シェア リツイート ブックマーク ダウンロード 返信 アクセス フォロワー 訪問者 表示"
)

# No ASCII letter or digit stands before a match, nor a letter of Latin, Greek, Cyrillic and other scripts of two bytes:
# but a script without spaces may go on.
_START = r"(?:(?<![0-9a-z])(?<![\xc3-\xdf][\x80-\xbf])|(?=[\xe0-\xef]))"
_STOP = r"(?![0-9a-z\xc3-\xdf])"


def _any(words: Iterable[str]) -> str:
    """Match one of the words, the longest that is there: a tree of their letters, so that few are tried."""
    tails: dict[str, list[str]] = {}
    for word in words:
        tails.setdefault(re.escape(word[:1]), []).append(word[1:])
    choices = (first if not any(rest) else first + _any(rest) for first, rest in tails.items() if first)
    return f"(?:{'|'.join(choices)}){'?' if '' in tails else ''}"


def _dates() -> list[_Choice]:
    year, month, day = "(?:19|20)[0-9]{2}", "(?:1[0-2]|0?[1-9])", "(?:3[01]|[12][0-9]|0?[1-9])"
    month2, day2 = "(?:1[0-2]|0[1-9])", "(?:3[01]|[12][0-9]|0[1-9])"
    hour, hour2, sixty = "(?:2[0-4]|1[0-9]|0?[0-9])", "(?:2[0-4]|[01][0-9])", "[0-5][0-9]"
    name, zones, half_cjk = rf"{_any(_MONTHS.split())}\.?", _any(_ZONES.split()), f"(?:{_any(_HALVES.split())} ?)"

    # Times.
    offset = rf"[+-](?:0[0-9]|1[0-4]):?{sixty}"
    zone = (
        rf"(?:(?: ?(?:(?:utc|gmt) ?[+-][0-9]{{1,2}}(?::?{sixty})?|{offset}|{zones})(?![0-9a-z]))"
        rf"(?: \((?:{zones}|[a-z]{{3,20}}(?: [a-z]{{3,20}}){{0,3}} time)\))?)"
    )
    fraction = "(?:[.,][0-9]{1,9})?"
    seconds = rf"(?::(?:{sixty}|60){fraction}(?:[+-](?:0[0-9]|1[0-4])(?![0-9a-z:]))?)"
    half, unit = r"(?: ?[ap]\.? ?m(?![0-9a-z])\.?)", "(?:(?: uhr| ?h)(?![0-9a-z]))"
    clock_cjk = rf"{hour} ?(?:时|時|点|點|시) ?(?:{sixty}|[0-9]) ?(?:分|분)(?: ?(?:{sixty}|[0-9]) ?(?:秒|초))?"
    clock = rf"(?:{half_cjk}?(?:{hour}[:h]{sixty}{seconds}?{half}?{unit}?{zone}?|{clock_cjk}))"
    joint = r"(?:[,:]? (?:(?:at|um|à|às|om|alle|alle ore|ore|a las|klo|kl\.?|saat|в) )?|[,:]| ?(?:-|–|—|\||·) ?)"
    then = f"(?:{joint}{clock})"
    alone = (
        rf"(?=[0-9]{{1,2}}[:h])(?<![0-9]:)(?<![a-f][0-9a-f]:)(?<!::)"
        rf"(?:{hour2}[:h]{sixty}{seconds}?{half}?{unit}?{zone}?"
        rf"|{hour}:{sixty}(?:{seconds}(?:{half}|{unit})?{zone}?|{half}{zone}?|{unit}|{zone}))(?![:.][0-9a-f])"
    )

    # Days.
    weekday = (
        rf"(?:{_any(_DAYS.split())}\.?,?|{_any(_SHORT_DAYS.replace('.', '').split())}[.,]{{1,2}}) (?:den |le |el )?"
    )
    days_cjk = _any("月火水木金土日一二三四五六天월화수목금토일")
    weekday_cjk = (
        rf"(?: ?(?:\((?:星期|周|週)?{days_cjk}(?:曜(?:日)?|요일)?\)|(?:星期|周|週){days_cjk}"
        rf"|{days_cjk}(?:曜(?:日)?|요일)))?"
    )
    in_year = rf"{year}(?: ?г\.?)?{then}?"
    day_name = (
        rf"{day}(?:\.|er|st|nd|rd|th|º|o|°)?(?: (?:de |di |of )?|[-/])?{name}"
        rf"(?:(?:,? (?:de |del )?|[-/])?{in_year}|[-/][0-9]{{2}}{then}?|{then})(?!-[0-9])"
    )
    name_day = rf"{name} {day}(?:st|nd|rd|th)?(?:,? ?{in_year}|,? {clock}(?: {year})?|{then})(?!-[0-9])"
    numeric = (
        rf"(?:(?<![0-9]/)(?:{day}/{month}|{month}/{day})/(?:{year}|[0-9]{{2}}){then}?(?!/[0-9])"
        rf"|(?<![0-9]-)(?:{day}-{month}|{month}-{day})-{year}{then}?(?!-[0-9])"
        rf"|(?<![0-9]\.)(?:{day}\. ?{month}\. ?{year}{then}?|{day2}\.{month2}\.[0-9]{{2}}{then})(?!\.[0-9]))"
    )
    iso = (
        rf"(?:(?<![0-9]-){year}-{month}-{day}(?:[t_-]{hour2}[:.-]?{sixty}(?:[:.-]?{sixty}{fraction})?{zone}?"
        rf"|{weekday_cjk}{then}?)(?!-[0-9])|{year}/{month}/{day}{weekday_cjk}{then}?"
        rf"|(?<![0-9]\.){year}\.{month2}\.{day2}\.?{weekday_cjk}{then}?(?!\.[0-9]))"
    )
    basic = rf"{year}{month2}{day2}(?:t{hour2}{sixty}(?:{sixty}{fraction})?{zone}?|{hour2}{sixty}{sixty})"
    month_cjk = rf"{month} ?(?:月|월) ?{day} ?(?:日|일){weekday_cjk}"
    of_year_cjk = rf" ?(?:年|년) ?{month_cjk}(?: ?{clock}|{then})?"
    half_day = rf"{half_cjk}(?:{hour}:{sixty}{seconds}?|{clock_cjk})"
    return [
        ("date", (4,), rf"(?:{iso}|{year}{of_year_cjk}|{year}\. {month}\. {day}\.?{then}?)"),
        ("date", (8, 14), basic),
        ("date", (1, 2), f"(?:{numeric}|{day_name}|{alone}|{clock_cjk}|{month_cjk}(?: ?{clock}|{then}))"),
        ("date", (0,), f"(?:{weekday}(?:{numeric}|{day_name}|{name_day})|{name_day})"),
        ("date", (0,), f"(?:{_any(_ERAS.split())} ?[0-9]{{1,2}}{of_year_cjk}|{half_day})"),
    ]


def _counters() -> list[_Choice]:
    number = r"([0-9]++(?:[.,'][0-9]++){0,4}+(?: ?(?:(?:k|m|mio\.?|tsd\.?|mn)(?![a-z])|万|萬|亿|億|千))?\+?)"
    word, word_cjk = _any(_COUNTED.split()), _any(_COUNTED_CJK.split())
    after = rf"(?: {word}(?![0-9a-z])| gefällt| ?(?:人次|次|人|条|條|个|個|篇|件|回|度)?(?:の)?{word_cjk})"
    before = (
        rf"(?:viewed |{word}(?:[ _-]?counts?)?[\"']? ?[:=(] ?[\"']?"
        rf"|{word_cjk}(?:量|人数|次数|次數|回数|数|數)?[\"']? ?[:=(!]? ?[\"']?)"
    )
    return [
        ("counter", range(1, _MANY + 1), rf"(?<![0-9][.,:/'-])(?<!\$){number}(?={after})"),
        ("counter", (0,), rf"{before}{number}(?![0-9a-z%])(?![.,:/-][0-9])"),
    ]


_PART = "[a-z0-9_-]"  # of a JWT, in lower case

# In this order: at one place the first that fits is taken.
_CHOICES: list[_Choice] = [
    (
        "jwt",
        (0,),
        rf"(?<![_-])eyj(?=[a-z_-]{{0,36}}[0-9]){_PART}{{8,}}+\.{_PART}{{2,}}+\.{_PART}*+(?:\.{_PART}++\.{_PART}++)?",
    ),
    ("uuid", range(9), "(?=[a-f-]{0,36}[0-9])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"),
    ("hex", range(_MANY + 1), "(?=(?:0x)?[0-9]*+[a-f])(?=(?:0x)?[a-f]{0,31}[0-9])(?:0x)?[0-9a-f]{32,}+"),
    ("epoch", (10, 13), r"(?<![0-9][-.])(?<![$+.])(?<!isbn[ :])(?<!isbn: )1[0-9]{9}(?:[0-9]{3})?(?![-.][0-9])"),
    *_dates(),
    *_counters(),
]

# What a match starts with if not with a digit; and what follows digits and a space in one. \0 is any byte.
_STARTS, _GOES_ON = 1, 2
_HEXADECIMAL = " ".join(map("".join, product("abcdef", "0123456789abcdef", "0123456789abcdef")))
_FIRST = {
    "jwt": "eyj",
    "uuid": _HEXADECIMAL,
    "hex": _HEXADECIMAL,
    "date": f"{_MONTHS} {_DAYS} {_SHORT_DAYS} {_SHORT_DAYS.replace('.', ',')} {_HALVES} {_ERAS}",
    "counter": f"{_COUNTED} {_COUNTED_CJK}",
}
_NEXT = {"date": f"{_MONTHS} de\0 di\0 of\0", "counter": f"{_COUNTED} mio mn\0 tsd gefällt k\0\0 m\0\0"}


@functools.cache
def _pattern(kinds: tuple[Noise, ...], digits: int | None = None) -> re.Pattern[bytes] | None:
    """What noise looks like in UTF-8 with ASCII letters in lower case: any, or what starts with so many digits."""
    choices = [choice for kind, many, choice in _CHOICES if kind in kinds and (digits is None or digits in many)]
    return re.compile(f"{_START}(?:{'|'.join(choices)}){_STOP}".encode()) if choices else None


@functools.cache
def _table(kinds: tuple[Noise, ...]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """What three bytes may be, and whether a match starts with so many digits, shapes (2^24,) and (_MANY + 1,)."""
    table = np.zeros((256, 256, 256), np.uint8)
    for part, words in ((_STARTS, _FIRST), (_GOES_ON, _NEXT)):
        for word in " ".join(words.get(kind, "") for kind in kinds).encode().split():
            table[tuple(byte or slice(None) for byte in word[:3])] |= part
    return table.reshape(-1), np.array([_pattern(kinds, digits) is not None for digits in range(_MANY + 1)])


@kernel
def _candidates(data, table, lengths, places, digits):  # type: ignore[no-untyped-def]
    """Write where a match may start and with how many digits, the last place first; return how many there are."""
    count, run, digit, goes_on = 0, 0, len(data) + _REACH, False
    first, behind = np.int64(0), np.int64(0)  # the byte, and the next four
    for at in range(len(data) - 1, -1, -1):
        behind = first << 24 | behind >> 8
        first = np.int64(data[at])
        run = run + 1 if 48 <= first < 58 else 0
        if run:
            digit = at
            if run == 1:
                second = behind >> 24
                if second == 32:
                    goes_on = bool((behind >> 16 & 0xFF) >= 0x80 or table[behind & 0xFFFFFF] & _GOES_ON)
                else:  # a letter, or one of '+,-./:
                    goes_on = bool(second >= 97 or second == 39 or 43 <= second <= 47 or second == 58)
            # A number of fewer than ten digits is nothing by itself.
            likely = bool(lengths[min(run, _MANY)]) and (goes_on or run >= 10)
        else:
            likely = digit - at < _REACH and (table[first << 16 | behind >> 16] & _STARTS) > 0
        if likely:
            before = data[at - 1] if at else np.uint8(0)
            if first >= 0xE0 or not (48 <= before < 58 or 97 <= before < 123):
                places[count], digits[count] = at, min(run, _MANY)
                count += 1
    return count


def check_noise(kinds: Any) -> tuple[Noise, ...]:
    """The kinds of noise in order, each once, or the error that says what is wrong with them."""
    if isinstance(kinds, str) or not isinstance(kinds, Iterable):
        raise TypeError(f"mask={kinds!r}: give a tuple of names, such as ('date', 'uuid')")
    names = list(kinds)
    for name in names:
        if name not in NOISE:
            raise ValueError(f"mask {name!r}: choose among {', '.join(NOISE)}")
    return tuple(sorted(set(names)))


def mask(text: str, kinds: Iterable[Noise] = NOISE) -> str:
    """Take the noise out of a text, as a `Scheme` with these masks does.

    Parameters
    ----------
    text
        A text; normalised (`simdup.normalize`) where the scheme does so.
    kinds
        Any of "counter", "date", "epoch", "hex", "jwt", "uuid".

    Returns
    -------
    str
        With white space folded, and a space in place of each match.

    Raises
    ------
    TypeError, ValueError
        For what is no text, and for kinds that there are not.
    """
    if not isinstance(text, str):
        raise TypeError(f"{text!r:.60} is no str")
    data = " ".join(text.split()).encode("utf-8", "surrogatepass")
    pattern = _pattern(check_noise(kinds))
    spans = [_noise(match) for match in pattern.finditer(data.lower())] if pattern else []
    return _without(data, spans).decode("utf-8", "surrogatepass")


def _noise(match: re.Match[bytes]) -> tuple[int, int]:
    return match.span(match.lastindex or 0)


def _without(data: bytes, spans: Sequence[tuple[int, int]]) -> bytes:
    starts, stops = zip(*spans, strict=True) if spans else ((), ())
    return b" ".join(data[start:stop] for start, stop in zip((0, *stops), (*starts, len(data)), strict=True))


def without_noise(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], kinds: tuple[Noise, ...]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Take the noise out of many texts.

    Parameters
    ----------
    data
        The texts in UTF-8, white space folded; the last byte of each that is not empty is a line feed.
    offsets
        Text d is ``data[offsets[d] : offsets[d + 1]]``, shape (n + 1,).
    kinds
        As `Scheme.mask` has them.

    Returns
    -------
    data, offsets
        Likewise.
    """
    whole = data.tobytes()
    lower = whole.lower()
    places, digits = np.empty(len(data), np.int64), np.empty(len(data), np.uint8)
    count = _candidates(np.frombuffer(lower, np.uint8), *_table(kinds), places, digits)
    patterns = [_pattern(kinds, many) for many in range(_MANY + 1)]
    spans, stop = [], 0
    for at, many in zip(places[:count][::-1].tolist(), digits[:count][::-1].tolist(), strict=True):
        pattern = patterns[many]
        if at >= stop and pattern and (match := pattern.match(lower, at)):
            spans.append(_noise(match))
            stop = match.end()
    if not spans:
        return data, offsets
    ends = np.array(spans, np.int64)
    gone = np.append(0, np.cumsum(ends[:, 1] - ends[:, 0] - 1))
    return np.frombuffer(_without(whole, spans), np.uint8), offsets - gone[np.searchsorted(ends[:, 1], offsets)]
