"""CUDA to PTX by NVRTC, with the options that kernels are compiled with."""

import ctypes

from test_device_headers import NVRTC

OPTIONS = ("--std=c++20", "--fmad=false", "-default-device", "-lineinfo")


def read_text(program, what):
    size = ctypes.c_size_t()
    getattr(NVRTC, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(NVRTC, f"nvrtcGet{what}")(program, text)
    return text.value.decode()


def to_ptx(source, architecture="compute_90a"):
    program = ctypes.c_void_p()
    NVRTC.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"k.cu", 0, None, None)
    options = [text.encode() for text in (f"--gpu-architecture={architecture}", *OPTIONS)]
    given = (ctypes.c_char_p * len(options))(*options)
    status = NVRTC.nvrtcCompileProgram(program, len(options), given)
    assert status == 0, read_text(program, "ProgramLog")
    ptx = read_text(program, "PTX")
    NVRTC.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx
