"""Names and units of performance_test's logs, each defined once for CSV and JSON, and a file's content as values.

A CSV file has settings as lines `name: value`, a line `---EXPERIMENT-START---`, a header and one row per second. Cells
are separated by a comma and a tab, those of rows by a comma and two tabs; versions before 1.0 also end lines with that.
A JSON file is one object with the settings as members and the rows in `analysis_results`.

The dialects differ in columns and in what they mean:

    2018-19    pub_loop_res_* and sub_loop_res_* too, cpu_usage from October 2019 on; T_experiment is the end of a row
    1.x        T_experiment is the beginning of a row; some versions count latencies from the start of the process on
    2.x        latencies of each second by itself, in whole nanoseconds

The slides that presented it in 2018 show nine of the columns, without units in their names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

START = "---EXPERIMENT-START---"
RESULTS = "analysis_results"
HEADER_SEPARATOR = ",\t"
ROW_SEPARATOR = ",\t\t"
EXTERNAL = "external_info_"  # prefix of a JSON member with a setting from APEX_PERFORMANCE_TEST
VERSION = "2.3.0"  # the variant that is written

MS, US, NS = 1e3, 1e6, 1e9

# Settings that perflab adds to its exports, where performance_test has those of its environment.
MEASURED_BY = "measured_by"
ACCOUNTING = "accounting"
RUN = "run"
MIDDLEWARE = "middleware"
EXECUTOR = "executor"
IPC = "ipc"
PASS_BY = "pass_by"
TREATMENT = "treatment"
PURPOSE = "purpose"
FACTORS = "factors"  # an object of JSON
PROCESS = "process"
TRIAL = "trial"
DURATION = "duration_s"  # as in max_runtime, which is an integer
CPUS = "cpus"
ORIGINAL, CORRECTED = "original", "corrected"


@dataclass(frozen=True)
class Column:
    """A column: `member` of Second, its name in CSV and in JSON, and how many of their units make one of perflab's."""

    member: str
    csv: str | None
    json: str | None
    csv_scale: float = 1
    json_scale: float = 1
    whole: bool = False  # an integer in both
    digits: Literal["fixed", "share", "general"] = "general"  # format of a CSV cell: six decimals, two, or four digits

    @property
    def bare(self) -> str | None:
        """The name in CSV without its unit, as in the slides."""
        return None if self.csv is None else self.csv.partition(" (")[0]


def _usage(name: str) -> Column:
    return Column(name, name, f"sys_tracker_{name}", whole=True)


COLUMNS = (
    Column("experiment_s", "T_experiment", "experiment_start", json_scale=NS, digits="fixed"),
    Column("loop_s", "T_loop", "loop_start", json_scale=NS, digits="fixed"),
    Column("received", "received", "num_samples_received", whole=True),
    Column("sent", "sent", "num_samples_sent", whole=True),
    Column("lost", "lost", "num_samples_lost", whole=True),
    Column("relative_loss", "relative_loss", None, digits="share"),
    Column("data_received", "data_received", "total_data_received", whole=True),
    Column("latency_min_s", "latency_min (ms)", "latency_min", MS),
    Column("latency_max_s", "latency_max (ms)", "latency_max", MS),
    Column("latency_n", None, "latency_n", whole=True),
    Column("latency_mean_s", "latency_mean (ms)", "latency_mean", MS),
    Column("latency_m2_s2", None, "latency_M2"),
    Column("latency_variance_s2", "latency_variance (ms)", "latency_variance", MS),
    Column("ru_utime_s", "ru_utime", "sys_tracker_ru_utime", json_scale=NS),
    Column("ru_stime_s", "ru_stime", "sys_tracker_ru_stime", json_scale=NS),
    *map(_usage, (
        "ru_maxrss", "ru_ixrss", "ru_idrss", "ru_isrss", "ru_minflt", "ru_majflt", "ru_nswap", "ru_inblock",
        "ru_oublock", "ru_msgsnd", "ru_msgrcv", "ru_nsignals", "ru_nvcsw", "ru_nivcsw",
    )),
    Column("cpu_cores", None, "cpu_info_cpu_cores", whole=True),
    Column("cpu_usage", "cpu_usage (%)", "cpu_info_cpu_usage"),
)  # fmt: skip


@dataclass(frozen=True)
class Usage:
    """A member of Second that perflab samples, as the column `ours` of its resources, `scale` of which make one."""

    member: str
    ours: str
    scale: int = 1

    @property
    def is_time(self) -> bool:
        return self.scale == NS


USAGE = (
    Usage("ru_utime_s", "user_ns", int(NS)),
    Usage("ru_stime_s", "system_ns", int(NS)),
    Usage("ru_maxrss", "rss_peak_kb"),
    Usage("ru_minflt", "minor_faults"),
    Usage("ru_majflt", "major_faults"),
    Usage("ru_inblock", "block_inputs"),
    Usage("ru_oublock", "block_outputs"),
    Usage("ru_nvcsw", "voluntary_switches"),
    Usage("ru_nivcsw", "involuntary_switches"),
)

CSV_COLUMNS = tuple(column for column in COLUMNS if column.csv is not None)
JSON_COLUMNS = tuple(column for column in COLUMNS if column.json is not None)

# Unused columns of 2018-19.
LOOPS = tuple(
    f"{loop}_loop_res_{side}" for loop in ("pub", "sub") for side in ("min", "max", "mean", "variance")
)  # fmt: skip

# Without these, a table is not one of performance_test.
NEEDED = ("received", "sent", "lost", "latency_min", "latency_max", "latency_mean")


@dataclass(frozen=True)
class Setting:
    """A setting: its name in JSON, and those of its line in CSV, the current one first."""

    key: str
    csv: tuple[str, ...] = ()
    kind: Literal["text", "whole", "flag"] = "text"


# In the order of 2.3. Four of them share the line QOS of CSV.
SETTINGS = (
    Setting("id", ("Experiment id",)),
    Setting("perf_test_version", ("Performance Test Version",)),
    Setting("logfile_name", ("Logfile name",)),
    Setting("com_mean_str", ("Communicator", "Communication mean")),
    Setting("dds_domain_id", ("DDS domain id",), "whole"),
    Setting("qos_reliability"),
    Setting("qos_durability"),
    Setting("qos_history_kind"),
    Setting("qos_history_depth", kind="whole"),
    Setting("execution_strategy"),
    Setting("rate", ("Publishing rate",), "whole"),
    Setting("topic_name", ("Topic name",)),
    Setting("msg_name", ("Msg name",)),
    Setting("max_runtime", ("Maximum runtime (sec)",), "whole"),
    Setting("number_of_publishers", ("Number of publishers",), "whole"),
    Setting("number_of_subscribers", ("Number of subscribers",), "whole"),
    Setting("check_memory", ("Memory check enabled",), "flag"),
    Setting("use_single_participant", ("Use single participant",), "flag"),
    Setting("with_security", ("With security",), "flag"),
    Setting("use_shared_memory", ("Shared memory transfer",), "flag"),
    Setting("use_loaned_samples", (), "flag"),
    Setting("is_zero_copy_transfer", ("Zero copy transfer",), "flag"),
    Setting("unbounded_msg_size", ("Unbounded message size",), "whole"),
    Setting("roundtrip_mode", ("Roundtrip Mode",)),
    Setting("is_rt_init_required", (), "flag"),
    Setting("ignore_seconds", ("Ignore seconds from beginning",), "whole"),
    Setting("rmw_implementation", ("rmw_implementation", "RMW Implementation")),
)
BY_KEY = {setting.key: setting for setting in SETTINGS}
QOS = "QOS"
QOS_PARTS = {
    "Reliability": "qos_reliability",
    "Durability": "qos_durability",
    "History kind": "qos_history_kind",
    "History depth": "qos_history_depth",
}

# Those that 2.3 omits in one of the two formats, or no longer has.
NOT_IN_CSV = ("use_single_participant", "use_shared_memory")
NOT_IN_JSON = ("logfile_name", "use_single_participant", "unbounded_msg_size", "ignore_seconds")

# Its communicators, as middlewares and executors of perflab. rclcpp's include the RMW.
RCLCPP = {
    "rclcpp-single-threaded-executor": "single_threaded",
    "rclcpp-static-single-threaded-executor": "static_single_threaded",
    "rclcpp-waitset": "wait_set",
    "RCLCPP_SINGLE_THREADED_EXECUTOR": "single_threaded",
    "RCLCPP_STATIC_SINGLE_THREADED_EXECUTOR": "static_single_threaded",
    "RCLCPP_WAITSET": "wait_set",
    "ROS2": None,  # of 2018-19: the executor of that time
}
COMMUNICATORS = {"CycloneDDS": "cyclonedds", "CYCLONEDDS": "cyclonedds", "FastRTPS": "fastdds", "FASTRTPS": "fastdds"}

Value = str | int | bool


@dataclass(frozen=True, kw_only=True)
class Second:
    """A row, in seconds, s², bytes, KiB and %. None: missing in the file.

    Counts are as in the file: per second of `loop_s`, or for an export of perflab with its own accounting per row.
    """

    experiment_s: float | None = None
    loop_s: float | None = None
    received: float | None = None
    sent: float | None = None
    lost: float | None = None
    relative_loss: float | None = None
    data_received: float | None = None
    latency_min_s: float | None = None
    latency_max_s: float | None = None
    latency_n: float | None = None
    latency_mean_s: float | None = None
    latency_m2_s2: float | None = None
    latency_variance_s2: float | None = None
    ru_utime_s: float | None = None
    ru_stime_s: float | None = None
    ru_maxrss: float | None = None
    ru_ixrss: float | None = None
    ru_idrss: float | None = None
    ru_isrss: float | None = None
    ru_minflt: float | None = None
    ru_majflt: float | None = None
    ru_nswap: float | None = None
    ru_inblock: float | None = None
    ru_oublock: float | None = None
    ru_msgsnd: float | None = None
    ru_msgrcv: float | None = None
    ru_nsignals: float | None = None
    ru_nvcsw: float | None = None
    ru_nivcsw: float | None = None
    cpu_cores: float | None = None
    cpu_usage: float | None = None


@dataclass(frozen=True)
class Log:
    """A file: its settings by their names in JSON, additions from its environment, and its rows. `older`: of
    2018-19."""

    path: Path
    settings: Mapping[str, Value]
    external: Mapping[str, str]
    seconds: tuple[Second, ...] = field(repr=False)
    older: bool = False

    @property
    def accounting(self) -> str | None:
        """The accounting of an export of perflab; None for performance_test's own logs."""
        return self.external.get(ACCOUNTING) if MEASURED_BY in self.external else None

    @property
    def is_own(self) -> bool:
        """Whether perflab wrote it."""
        return self.accounting is not None

    def whole(self, key: str) -> int | None:
        value = self.settings.get(key)
        return int(value) if isinstance(value, int) else None

    def text(self, key: str) -> str | None:
        value = self.settings.get(key)
        return None if value is None else str(value)


def variance_scale(column: Column, accounting: str | None) -> float:
    """For a CSV cell. performance_test multiplies s² by 1000 and says ms; perflab's own accounting has ms²."""
    own = column.member == "latency_variance_s2" and accounting == CORRECTED
    return US if own else column.csv_scale
