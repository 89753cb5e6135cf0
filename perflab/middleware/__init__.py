"""Middlewares, which carry the messages. Each is one module with a KIND, here or in another package (plugins.py)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perflab.errors import BadInput, Unavailable, instead
from perflab.middleware import cyclonedds, disturbance, fastdds, installation, rclcpp, security
from perflab.middleware.installation import MARK, Installation
from perflab.middleware.kind import (
    REFUSED,
    SUPPORTED,
    Availability,
    Daemon,
    MiddlewareKind,
    PolicySupport,
    ThreadSettings,
    ThreadsWanted,
)
from perflab.middleware.kind import Option as MiddlewareOption
from perflab.middleware.probe import Answer, probe
from perflab.native import Native
from perflab.plugins import Registry

if TYPE_CHECKING:
    from perflab.results.files import UsedMiddleware

REGISTRY: Registry[MiddlewareKind] = Registry("middleware", "perflab.middleware", MiddlewareKind)
DEFAULT = cyclonedds.KIND.name


@dataclass(frozen=True)
class Middleware:
    """A middleware with its options, found on this machine.

    `name` is its name in tables: the kind's, or NAME@LABEL for another build than the machine's own.
    """

    name: str
    runtime: str
    library: Path | None
    version: str | None
    options: Mapping[str, str] = field(default_factory=dict)
    across_processes: bool = True
    instances: bool = False  # topics may have keys
    filters: bool = False  # subscriptions may have a content filter
    policies: Mapping[str, PolicySupport] = field(default_factory=dict)  # of QoS
    wire: str | None = None  # default: the kind's; likewise below
    service_framings: tuple[str, ...] = ()
    rmw: str | None = None
    kind_name: str | None = None  # if the name is different
    installation: Installation | None = None  # None: the library that the machine finds by default
    own_library: Path | None = None  # in that installation, with its digest
    sha256: str | None = None

    @property
    def kind(self) -> str:
        return self.kind_name or self.name

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables that its processes need, in addition to perflab's own."""
        return {} if self.installation is None else self.installation.environment

    @property
    def daemon(self) -> Daemon | None:
        """The daemons that must run beside its processes, with these options."""
        daemon = REGISTRY[self.kind].daemon if self.kind in REGISTRY else None
        return daemon if daemon is not None and daemon.wanted(self.options) else None

    @property
    def secured(self) -> bool:
        """Whether its processes need credentials that are created for the trial."""
        return security.wanted(self.options) and self.kind in REGISTRY and REGISTRY[self.kind].secured

    @property
    def programmed_delay_ns(self) -> int:
        """How long it may hold a message back on purpose."""
        return disturbance.programmed_delay_ns(self.options)

    def refusal(self, qos: Mapping[str, Any]) -> str | None:
        """Why it cannot have the `qos` of a resolved graph, according to its declaration; None if it can, or is not
        known to refuse it."""
        from perflab.qos import POLICIES

        for policy in POLICIES:
            value = qos.get(policy.resolved)
            said = self.policies.get(f"{policy.dds}={value}") or self.policies.get(policy.dds)
            if policy.asks(value) and said is not None and said.support == REFUSED:
                why = f": {said.note}" if said.note else ""
                asked, right = policy.written(value), policy.written(policy.least)
                return f"{self.name} refuses {policy.name} {asked}{why}; use {right}"
        return None

    @property
    def used(self) -> UsedMiddleware:
        """In the form of the manifest and of trial.json."""
        from perflab.results.files import UsedMiddleware

        return UsedMiddleware(
            name=self.name,
            version=self.version,
            options=dict(self.options),
            prefix=None if self.installation is None else str(self.installation.prefix),
            library=None if self.own_library is None else str(self.own_library),
            sha256=self.sha256,
        )

    def configuration(
        self, domain: int | None, network: str, seed: int, process: int = 0, credentials: Path | None = None
    ) -> dict[str, Any]:
        """The `middleware` member of a node's configuration, by process index (docs/formats.md, section 2).
        `credentials` is the folder with the trial's credentials."""
        seeded = disturbance.seeded(self.options, seed, process)
        if self.secured:
            seeded = {**seeded, security.OPTION: str(credentials)}
        return {
            "name": self.kind,
            "library": None if self.library is None else str(self.library),
            "domain": domain,
            "network": network,
            "options": dict(self.options) | seeded,
        }


def options_by_path() -> dict[str, MiddlewareOption]:
    """Every option: "NAME.OPTION" for one middleware, "disturb.OPTION" for all of them."""
    of_kinds = {f"{name}.{option.key}": option for name, kind in REGISTRY.items() for option in kind.options}
    return of_kinds | {option.key: option for option in disturbance.OPTIONS}


def select(names: str, options: Sequence[str], native: Native) -> list[tuple[Middleware, ...]]:
    """The middlewares of "cyclonedds,cyclonedds+fastdds" with options "[NAME.]key=value".

    NAME@PREFIX is the build of it in an installation folder. A tuple of one is for all processes of a graph; several
    are one for each process. Raises BadInput and Unavailable.
    """
    mixtures = [_mixture(word, names) for word in names.split(",")]
    if len(set(mixtures)) != len(mixtures):
        raise BadInput(f"--middleware {names!r} names one twice; use --trials to repeat it")
    wanted = list(dict.fromkeys(name for mixture in mixtures for name in mixture))
    settings = _parse_options(options, wanted)
    called = _called(wanted)
    found = {
        word: replace(_found(word, settings[word], native), name=called[word], kind_name=kind_of(word))
        for word in wanted
    }
    return [_side_by_side([found[name] for name in mixture], names) for mixture in mixtures]


def alike(middlewares: Iterable[Middleware]) -> list[str]:
    """One line for each group of builds with the same library, which cannot differ."""
    named: dict[str, dict[str, None]] = {}
    for middleware in middlewares:
        if middleware.sha256 is not None:
            named.setdefault(middleware.sha256, {})[middleware.name] = None
    return [f"{' and '.join(names)} have the same library, byte by byte" for names in named.values() if len(names) > 1]


def common_framing(
    middlewares: Sequence[Middleware], asked: str | None, serving: Collection[int] | None = None
) -> str | None:
    """How the processes of a graph match replies to requests; None leaves it to each middleware.

    `serving` are the indexes of the processes with a client or server, since only these must agree; None: all.

    Raises Unavailable if one of them cannot do what was `asked`, or if they have nothing in common.
    """
    for middleware in middlewares:
        if asked is not None and asked not in middleware.service_framings:
            raise Unavailable(
                f"--service-framing {asked}: middleware {middleware.name} can only carry "
                f"{' and '.join(middleware.service_framings)}"
            )
    if asked is not None or len(middlewares) == 1:
        return asked
    concerned = [m for index, m in enumerate(middlewares) if serving is None or index in serving]
    if len({m.name for m in concerned}) < 2:
        return None
    first, *others = concerned
    common = [f for f in first.service_framings if all(f in other.service_framings for other in others)]
    if not common:
        raise Unavailable(f"{'+'.join(m.name for m in concerned)}: they have no service framing in common")
    return common[0]


def available(kind: MiddlewareKind, native: Native) -> Availability:
    """Whether the middleware can be used here, with its version, or why not and the remedy."""
    return all_available([kind], native)[0]


def all_available(kinds: Iterable[MiddlewareKind], native: Native) -> list[Availability]:
    """The same for several, in order: their plug-ins are loaded in parallel."""
    found = [(kind, _plugin(kind, native)) for kind in kinds]
    answers = probe(library for _, library in found if isinstance(library, Path))
    return [_by_answer(kind, at, answers[at]) if isinstance(at, Path) else at for kind, at in found]


def _plugin(kind: MiddlewareKind, native: Native) -> Path | Availability:
    """The plug-in to load, or the answer without loading it."""
    if kind.runtime == "virtual":
        return Availability(True, None, None, "part of perflab-node", policies=_of_ros2())
    of_ros = kind.rmw is not None
    plugin = kind.plugin or kind.name
    library = native.runtime_library(rclcpp.RUNTIME) if of_ros else kind.library or native.middleware_library(plugin)
    missing = f"{library.name} is not in {library.parent}"

    def lacks(text: str) -> Availability:
        return Availability(False, library, None, text)

    if of_ros and not rclcpp.sourced():
        return lacks(rclcpp.NOT_SOURCED)
    if not library.is_file():
        built = f"built without ROS 2: {missing}; run `make` again in this shell"
        return lacks(built if of_ros else f"{missing}; {kind.install}")
    if library.is_relative_to(native.folder):
        lacking = native.needs.missing(str(library.relative_to(native.folder)))
        if lacking is not None:
            return lacks(lacking)
    if kind.rmw is not None and kind.rmw not in (there := rclcpp.installed()):
        package = kind.rmw.replace("_", "-")
        names = ", ".join(there) or "none"
        return lacks(f"this ROS 2 has no {kind.rmw}, only {names}; `apt install ros-$ROS_DISTRO-{package}`")
    return library


def _by_answer(kind: MiddlewareKind, library: Path, answer: Answer) -> Availability:
    of_ros = kind.rmw is not None
    plugin = kind.plugin or kind.name

    def lacks(text: str) -> Availability:
        return Availability(False, library, None, text)

    if answer.error is not None:
        return lacks(f"{library} cannot be used: {answer.error}; {'run `make` again' if of_ros else kind.install}")
    if of_ros:
        return Availability(True, library, answer.version, kind.summary, policies=_of_ros2())
    if answer.name != plugin:
        return lacks(f"{library} is a plug-in for {answer.name}; {kind.install}")
    said = None if kind.plugin else answer.summary
    return Availability(
        True,
        library,
        answer.version,
        said or kind.summary,
        answer.across_processes,
        answer.instances,
        answer.filters,
        policies=_declared(answer),
    )


def _declared(answer: Answer) -> dict[str, PolicySupport]:
    """Every policy, with the plug-in's exceptions for single values; policies that it does not name are refused."""
    from perflab import qos

    said = {name: PolicySupport(str(support), note) for name, (support, note) in answer.policies.items()}
    return {name: said.get(name, PolicySupport(REFUSED)) for name in qos.dds_policies()} | said


def _of_ros2() -> dict[str, PolicySupport]:
    """The policies that only ROS 2 has, which its profiles can express."""
    from perflab import qos

    known = qos.dds_policies(policy for policy in qos.POLICIES if policy.ros2)
    return {name: PolicySupport(SUPPORTED if name in known else REFUSED) for name in qos.dds_policies()}


def _available_in(build: Installation, kind: MiddlewareKind, native: Native) -> Availability:
    """The same for the library of another build, which the plug-in must then load."""
    at = _plugin(kind, native)
    if not isinstance(at, Path):
        return at
    answer = probe([at], build.environment)[at]
    availability = _by_answer(kind, at, answer)
    if answer.error is not None:
        text = f"{at} does not load with {build.folder}: {answer.error}; build perflab on that installation"
        return replace(availability, text=text)
    # The capabilities of a ROS 2 runtime are known once it has loaded its RMW: in the trial.
    libraries = tuple(map(Path, answer.libraries))
    complaint = None if kind.rmw is not None else installation.passed_over(kind, build, libraries)
    if complaint is not None:
        return replace(availability, usable=False, text=complaint)
    return replace(availability, libraries=tuple(path for path in libraries if build.has(path)))


def _library_in(build: Installation, kind: MiddlewareKind, availability: Availability) -> Path:
    """The file that was loaded; for ROS 2, the one in the folder."""
    there = [*availability.libraries, *sorted(path.resolve() for path in build.folder.iterdir())]
    return next(path for path in there if installation.is_of(kind, path))


def _side_by_side(mixture: Sequence[Middleware], names: str) -> tuple[Middleware, ...]:
    """The middlewares of one graph. Together with other libraries, ROS 2's Fast DDS uses UDP: two of its versions do
    not understand each other's shared memory, and Cyclone DDS does not reach the addresses that it announces
    otherwise."""
    if len(mixture) > 1 and any(middleware.secured for middleware in mixture):
        raise Unavailable(
            f"--middleware {names!r}: with {security.OPTION}=on two libraries cannot authenticate each other; use "
            "one middleware for all processes"
        )
    of_ros = [m.rmw in rclcpp.FASTRTPS for m in mixture]
    if all(of_ros) or not any(of_ros):
        return tuple(mixture)
    made = []
    for middleware in mixture:
        if middleware.kind != fastdds.KIND.name and middleware.rmw not in rclcpp.FASTRTPS:
            made.append(middleware)
            continue
        transport = middleware.options.get("transport", "udp")
        if transport != "udp":
            raise BadInput(
                f"--middleware {names!r}: transport={transport} of {middleware.name}: ROS 2's Fast DDS reaches "
                "other libraries only over UDP; use transport=udp"
            )
        made.append(replace(middleware, options={**middleware.options, "transport": "udp"}))
    return tuple(made)


def name_of(word: str) -> str:
    """The full name for the user's word: `rclcpp` is short for the RMW that it uses."""
    kind, mark, prefix = word.partition(MARK)
    return f"{rclcpp.NAME}/{rclcpp.chosen()}{mark}{prefix}" if kind == rclcpp.NAME else word


def kind_of(word: str) -> str:
    """The name of the kind in NAME[@PREFIX]."""
    return word.partition(MARK)[0]


def kinds_in(middleware: str | None) -> Iterator[MiddlewareKind]:
    """The kinds of a name in results, in order for a mixture; without unknown ones."""
    for word in (middleware or "").split("+"):
        if (kind := REGISTRY.get(kind_of(word))) is not None:
            yield kind


def what_threads_do(middleware: str | None, thread: str) -> str | None:
    """The task of a thread with that name in a middleware; for a mixture, the first middleware that has it. None:
    unknown."""
    known = (of for kind in kinds_in(middleware) for of in kind.threads)
    return next((does for name, does in known if fnmatchcase(thread, name)), None)


def thread_settings(middleware: str | None, wanted: ThreadsWanted) -> list[ThreadSettings]:
    """How to configure the scheduling of a middleware's threads in its own format; for a mixture, for each. The version
    is that of the middleware itself, not of a library below ROS 2."""
    kinds = {kind.name: kind for kind in kinds_in(middleware)}
    return [
        kind.thread_settings(wanted if name == middleware and kind.rmw is None else replace(wanted, version=None))
        for name, kind in kinds.items()
        if kind.thread_settings is not None
    ]


def _called(words: Sequence[str]) -> dict[str, str]:
    """The name of each: builds of one kind get distinct labels."""
    called = {}
    for word in words:
        prefixes = [Path(w.partition(MARK)[2]) for w in words if MARK in w and kind_of(w) == kind_of(word)]
        label = installation.labels(prefixes)[Path(word.partition(MARK)[2])] if MARK in word else ""
        called[word] = f"{kind_of(word)}{MARK}{label}" if label else word
    return called


def _mixture(word: str, names: str) -> tuple[str, ...]:
    """The names in "cyclonedds+fastdds"; a single one if all are the same."""
    mixture = tuple(name_of(name.strip()) for name in word.split("+"))
    for name in map(kind_of, mixture):
        if name.startswith(f"{rclcpp.NAME}/") and name not in REGISTRY:
            there = rclcpp.installed()
            raise Unavailable(
                f"middleware {name} is not available: this ROS 2 has {', '.join(there)}"
                if there
                else f"middleware {name} is not available: {rclcpp.NOT_SOURCED}"
            )
        if name not in REGISTRY:
            raise BadInput(f"unknown middleware {name!r}; {instead(name, (*REGISTRY, rclcpp.NAME))}")
    if len(set(mixture)) == 1 and len(mixture) > 1:
        raise BadInput(f"--middleware {names!r}: {word.strip()} mixes nothing; {mixture[0]} alone is for all processes")
    for name in mixture[1:]:
        one, other = REGISTRY[kind_of(mixture[0])], REGISTRY[kind_of(name)]
        if one.wire is None or one.wire != other.wire:
            raise BadInput(f"--middleware {names!r}: {one.name} and {other.name} have different wire protocols")
    return mixture


def _found(word: str, options: Mapping[str, str], native: Native) -> Middleware:
    """Parses NAME[@PREFIX]. Raises BadInput, Unavailable."""
    kind = REGISTRY[kind_of(word)]
    build = installation.found(kind, Path(word.partition(MARK)[2])) if MARK in word else None
    availability = available(kind, native) if build is None else _available_in(build, kind, native)
    if not availability.usable:
        raise Unavailable(f"middleware {word} is not available: {availability.text}")
    if kind.daemon is not None and kind.daemon.wanted(options):
        kind.daemon.require()
    if kind.secured and security.wanted(options):
        security.require()
    own = None if build is None else _library_in(build, kind, availability)
    return Middleware(
        installation=build,
        own_library=own,
        sha256=None if own is None else installation.digest(own),
        name=kind.name,
        runtime=kind.runtime,
        library=availability.library,
        version=availability.version,
        options=options,
        across_processes=availability.across_processes,
        instances=availability.instances,
        filters=availability.filters,
        policies=availability.policies,
        wire=kind.wire,
        service_framings=kind.service_framings,
        rmw=kind.rmw,
    )


def _parse_options(options: Iterable[str], wanted: Sequence[str]) -> dict[str, dict[str, str]]:
    """The options of each middleware; one without a NAME is for all that have no such option of their own.

    Options of the disturbance have their prefix.
    """
    own: dict[str, dict[str, str]] = {word: {} for word in wanted}
    common: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals or not key.strip("."):
            raise BadInput(f"--middleware-option {option!r} is not [NAME.]key=value")
        owner, dot, rest = key.partition(".")
        targets, name = [common], key
        if dot and owner == rclcpp.NAME:  # for all of its RMWs
            targets, name = [own[one] for one in own if one.startswith(f"{rclcpp.NAME}/")], rest
        elif dot and owner in REGISTRY:
            targets, name = [own[word] for word in own if kind_of(word) == owner], rest
        if not targets:
            raise BadInput(f"--middleware-option {option!r} is for {owner}, which --middleware does not name")
        for target in targets:
            if name in target:
                raise BadInput(f"--middleware-option {option!r} follows another value of {key!r}; give it once")
            target[name] = value
    return {
        name: _of_kind(kind, common) | _of_kind(kind, options)
        for name, options in own.items()
        for kind in [REGISTRY[kind_of(name)]]
    }


def _of_kind(kind: MiddlewareKind, options: Mapping[str, str]) -> dict[str, str]:
    """The options under the middleware's own names for them."""
    if not kind.disturbed and disturbance.is_asked_for(options):
        raise BadInput(
            f"--middleware-option {disturbance.NAME}.*: {kind.name} gets its messages directly from ROS 2, "
            "without a layer of perflab between; use cyclonedds, or the condition network_shaping"
        )
    names = {o.key: f"{disturbance.NAME}.{o.key}" for o in disturbance.WITHOUT_PREFIX} if kind.without_prefix else {}
    twice = [key for key, full in names.items() if key in options and full in options]
    if twice:
        raise BadInput(
            f"--middleware-option {twice[0]} and {names[twice[0]]} are the same option of {kind.name}; give one"
        )
    return {names.get(key, key): value for key, value in options.items()}
