"""MuJoCo's pictures of a scene, in a separate process: `python -m perflab.report.film.render`, with requests on stdin.

The environment selects the GL library before MuJoCo is loaded, and a faulty driver ends only this process. Reads one
JSON document and writes one line for each picture, or a last line with what is missing.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import sys
import zlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

Json = Mapping[str, Any]

# MuJoCo's names for them, in the order in which they are tried, with the library files.
LIBRARIES = {"egl": ("libEGL.so.1",), "osmesa": ("libOSMesa.so.8", "libOSMesa.so.6")}
VARIABLE = "MUJOCO_GL"  # of the environment; one of these words, or "disable"
SAMPLES = 4  # of each pixel
ROBOT, OBJECT = "0.91 0.92 0.94 1", "0.79 0.71 0.60 1"
GROUND, SKY = (0.80, 0.82, 0.85), (0.93, 0.94, 0.96)
PLANNED, EXECUTED, GOAL, FAILED = (0.0, 0.17, 0.85), (0.87, 0.44, 0.0), (0.0, 0.63, 0.53), (0.75, 0.11, 0.10)
WIDTH_M = 0.006  # of the tip's paths


class Missing(Exception):
    """What this machine lacks, in one line."""


def _egl(library: ctypes.CDLL) -> None:
    """A context without a surface: MuJoCo draws into its own frame buffer."""
    platform_surfaceless, opengl_api, opengl_bit = 0x31DD, 0x30A2, 0x0008
    surface_type, pbuffer_bit, renderable_type, depth_size, none = 0x3033, 0x0001, 0x3040, 0x3025, 0x3038
    for name in ("eglGetProcAddress", "eglGetDisplay", "eglCreateContext"):
        getattr(library, name).restype = ctypes.c_void_p
    library.eglGetProcAddress.argtypes = [ctypes.c_char_p]
    display = None
    if address := library.eglGetProcAddress(b"eglGetPlatformDisplayEXT"):
        get_display = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint, ctypes.c_void_p, ctypes.c_void_p)(address)
        display = get_display(platform_surfaceless, None, None)
    if not display:
        library.eglGetDisplay.argtypes = [ctypes.c_void_p]
        display = library.eglGetDisplay(None)
    library.eglInitialize.argtypes = [ctypes.c_void_p] * 3
    if not display or not library.eglInitialize(display, None, None):
        raise Missing("EGL has no display that works without a screen")
    asked = [surface_type, pbuffer_bit, renderable_type, opengl_bit, depth_size, 24, none]
    attributes = (ctypes.c_int * len(asked))(*asked)
    config, count = ctypes.c_void_p(), ctypes.c_int()
    library.eglChooseConfig.argtypes = [
        ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
    ]  # fmt: skip
    library.eglChooseConfig(display, attributes, ctypes.byref(config), 1, ctypes.byref(count))
    if count.value < 1:
        raise Missing("EGL has no OpenGL")
    library.eglBindAPI(opengl_api)
    library.eglCreateContext.argtypes = [ctypes.c_void_p] * 4
    library.eglMakeCurrent.argtypes = [ctypes.c_void_p] * 4
    context = library.eglCreateContext(display, config, None, None)
    if not context or not library.eglMakeCurrent(display, None, None, context):
        raise Missing("EGL provides no OpenGL context")


def _osmesa(library: ctypes.CDLL) -> None:
    rgba, unsigned_byte = 0x1908, 0x1401
    library.OSMesaCreateContextExt.restype = ctypes.c_void_p
    library.OSMesaCreateContextExt.argtypes = [ctypes.c_uint, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    library.OSMesaMakeCurrent.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_int, ctypes.c_int]
    context = library.OSMesaCreateContextExt(rgba, 24, 8, 0, None)
    _kept.append(ctypes.create_string_buffer(4 * 16 * 16))  # of its own window, in which nothing is drawn
    if not context or not library.OSMesaMakeCurrent(context, _kept[-1], unsigned_byte, 16, 16):
        raise Missing("OSMesa provides no context")


_kept: list[Any] = []  # for the lifetime of the process
_CONTEXTS: dict[str, Callable[[ctypes.CDLL], None]] = {"egl": _egl, "osmesa": _osmesa}


def begin() -> str:
    """Makes a context current, and returns the name of its library. Raises Missing."""
    asked = os.environ.get(VARIABLE, "").lower()
    if asked and asked not in LIBRARIES:
        raise Missing(f"{VARIABLE}={asked} is none of {' and '.join(LIBRARIES)}")
    problems = []
    for word in [asked] if asked else LIBRARIES:
        for file in LIBRARIES[word]:
            try:
                library = ctypes.CDLL(file, ctypes.RTLD_GLOBAL)  # MuJoCo finds its functions among the global ones
                _CONTEXTS[word](library)
            except OSError:
                problems.append(f"no {file}")
            except Missing as problem:
                problems.append(str(problem))
            else:
                os.environ[VARIABLE] = word
                return word
    raise Missing("; ".join(problems))


def model_xml(scene: Json, width: int, height: int) -> str:
    """The scene in MuJoCo's own format."""
    from xml.sax.saxutils import quoteattr

    meshes: list[str] = []

    def numbers(values: Sequence[float]) -> str:
        return quoteattr(" ".join(f"{value:.7g}" for value in values))

    def turned(value: Json) -> str:
        x, y, z, w = value["orientation"]
        return f"pos={numbers(value['position'])} quat={numbers([w, x, y, z])}"

    def geom(shape: Json, color: str) -> str:
        at = f'{turned(shape)} rgba="{color}" contype="0" conaffinity="0"'
        if "box" in shape:
            return f'<geom type="box" size={numbers([edge / 2 for edge in shape["box"]])} {at}/>'
        if "cylinder" in shape:
            size = [shape["cylinder"]["radius"], shape["cylinder"]["height"] / 2]
            return f'<geom type="cylinder" size={numbers(size)} {at}/>'
        if "sphere" in shape:
            return f'<geom type="sphere" size={numbers([shape["sphere"]])} {at}/>'
        name = f"mesh{len(meshes)}"
        points, faces = shape["mesh"]["points"], " ".join(map(str, shape["mesh"]["faces"]))
        meshes.append(f'<mesh name="{name}" inertia="shell" vertex={numbers(points)} face="{faces}"/>')
        return f'<geom type="mesh" mesh="{name}" {at}/>'

    # Each body is at the given pose ("mocap"): the caller knows the kinematic tree.
    bodies = [
        f'<body name={quoteattr(body["name"])} mocap="true">'
        + "".join(geom(shape, ROBOT if body["kind"] == "robot" else OBJECT) for shape in body["shapes"])
        + "</body>"
        for body in scene["bodies"]
    ]
    sky, ground = (" ".join(map(str, color)) for color in (SKY, GROUND))
    return (
        f'<mujoco><visual><global offwidth="{width}" offheight="{height}" fovy="38"/>'
        f'<quality offsamples="{SAMPLES}" shadowsize="2048"/>'
        '<headlight ambient=".38 .38 .38" diffuse=".35 .35 .35" specular=".1 .1 .1"/><map znear=".02"/></visual>'
        f'<asset><texture type="skybox" builtin="flat" rgb1="{sky}" width="8" height="8"/>{"".join(meshes)}</asset>'
        '<worldbody><light pos="1 -1.4 3" dir="-.3 .42 -.9" directional="true" diffuse=".5 .5 .5" castshadow="true"/>'
        f'<geom type="plane" size="3 3 .1" rgba="{ground} 1"/>{"".join(bodies)}</worldbody></mujoco>'
    )


class Renderer:
    """Draws a scene; requires a current context."""

    def __init__(self, scene: Json, camera: Json, width: int, height: int) -> None:
        import mujoco

        self._mujoco: Any = mujoco
        self._bodies = [body["name"] for body in scene["bodies"]]
        self._model = mujoco.MjModel.from_xml_string(model_xml(scene, width, height))
        self._data = mujoco.MjData(self._model)
        self._scene = mujoco.MjvScene(self._model, 4000)
        self._context = mujoco.MjrContext(self._model, mujoco.mjtFontScale.mjFONTSCALE_100)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        if self._context.currentBuffer != mujoco.mjtFramebuffer.mjFB_OFFSCREEN:
            raise Missing("OpenGL has no off-screen frame buffer")
        self._camera = mujoco.MjvCamera()
        self._camera.lookat[:] = camera["at"]
        for key in ("distance", "azimuth", "elevation"):
            setattr(self._camera, key, camera[key])
        self._rectangle = mujoco.MjrRect(0, 0, width, height)

    def picture(self, frame: Json) -> Any:
        """Red, green and blue of each pixel, from the top: bodies at their `poses`, with `lines` and `balls`."""
        import numpy as np

        mujoco = self._mujoco
        for name in self._bodies:
            body = self._model.body(name).mocapid[0]
            x, y, z, qx, qy, qz, qw = frame["poses"][name]
            self._data.mocap_pos[body] = (x, y, z)
            self._data.mocap_quat[body] = (qw, qx, qy, qz)
        mujoco.mj_forward(self._model, self._data)
        mujoco.mjv_updateScene(
            self._model, self._data, mujoco.MjvOption(), None, self._camera, mujoco.mjtCatBit.mjCAT_ALL, self._scene
        )
        for color, points in frame.get("lines", ()):
            for one, other in pairwise(points):
                self._line(one, other, color)
        for color, point, radius in frame.get("balls", ()):
            self._add(mujoco.mjtGeom.mjGEOM_SPHERE, [radius] * 3, point, color)
        mujoco.mjr_render(self._rectangle, self._scene, self._context)
        pixels = np.zeros((self._rectangle.height, self._rectangle.width, 3), np.uint8)
        mujoco.mjr_readPixels(pixels, None, self._rectangle, self._context)
        return pixels[::-1]

    def _add(self, kind: Any, size: Sequence[float], at: Sequence[float], color: Sequence[float]) -> Any:
        import numpy as np

        if self._scene.ngeom >= self._scene.maxgeom:
            return None
        geom = self._scene.geoms[self._scene.ngeom]
        self._mujoco.mjv_initGeom(
            geom, kind, np.array(size, float), np.array(at, float), np.eye(3).ravel(), np.array([*color, 1], np.float32)
        )
        self._scene.ngeom += 1
        return geom

    def _line(self, one: Sequence[float], other: Sequence[float], color: Sequence[float]) -> None:
        import numpy as np

        kind = self._mujoco.mjtGeom.mjGEOM_CAPSULE
        if (geom := self._add(kind, [WIDTH_M] * 3, one, color)) is not None:
            self._mujoco.mjv_connector(geom, kind, WIDTH_M / 2, np.array(one, float), np.array(other, float))


def png(pixels: Any) -> bytes:
    """An image with 8 bits for each of three colours."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes((8, 2, 0, 0, 0))
    rows = b"".join(b"\0" + pixels[row].tobytes() for row in range(height))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def _jpeg(image: bytes, width: int, height: int, quality: int) -> bytes:
    import vl_convert

    source = base64.b64encode(image).decode()
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">'
        f'<image width="{width}" height="{height}" href="data:image/png;base64,{source}"/></svg>'
    )
    made: bytes = vl_convert.svg_to_jpeg(svg, scale=1.0, quality=quality)
    return made


def _say(answer: Json) -> None:
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()


def main() -> int:
    asked = json.load(sys.stdin)
    try:
        library = begin()
        try:
            import mujoco  # noqa: F401
        except ImportError as error:
            raise Missing(f"no MuJoCo in this Python ({error}); `make manipulation` installs it") from None
        width, height = asked["size"]
        renderer = Renderer(asked["scene"], asked["camera"], width, height)
        for frame in asked["frames"]:
            made = png(renderer.picture(frame))
            if asked["quality"] is not None:
                made = _jpeg(made, width, height, asked["quality"])
            _say({"library": library, "picture": base64.b64encode(made).decode()})
    except Missing as problem:
        _say({"missing": str(problem)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
