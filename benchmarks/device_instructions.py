"""One row for each SASS instruction that benchmarks/device_numbers.py times, and their kernels."""

import dataclasses
import re

UNROLL = 128  # statements in a loop, over all chains
SHARED = "shared"  # the chain hands on an address in shared memory, which is stored there
TYPES = {"float": "f", "double": "d", "unsigned": "r", "unsigned long long": "l"}


@dataclasses.dataclass
class Row:
    """`ptx` has %0 for the chain and %1, %2 for operands of type `of`; `sass` is what it becomes.

    It is None for a load of constants.  `row` is that of sass.def; `lane_bytes` are those of a lane
    of the pipe of memory.
    """

    name: str
    of: str
    ptx: str
    sass: tuple
    row: str
    lane_bytes: int = 0
    arch: int = 80


F, D, U, L = TYPES
ROWS = [
    Row("ffma", F, "fma.rn.f32 %0, %0, %1, %2;", ("FFMA",), "ffma"),
    Row("fadd", F, "add.rn.f32 %0, %0, %1;", ("FADD",), "fadd"),
    Row("fmul", F, "mul.rn.f32 %0, %0, %1;", ("FMUL",), "fmul"),
    Row("iadd3", U, "{.reg .u32 t; add.u32 t, %0, %1; add.u32 %0, t, %2;}", ("IADD3",), "iadd3"),
    Row("lop3", U, "lop3.b32 %0, %0, %1, %2, 0x6a;", ("LOP3",), "lop3"),
    Row("shf", U, "shf.l.wrap.b32 %0, %0, %1, %2;", ("SHF",), "shf"),
    Row("imad", U, "mad.lo.u32 %0, %0, %1, %2;", ("IMAD",), "imad"),
    Row(
        "imad_wide",
        L,
        "{.reg .u32 s, t; cvt.u32.u64 s, %0; cvt.u32.u64 t, %1; mad.wide.u32 %0, s, t, %2;}",
        ("IMAD",),
        "imad_wide",
    ),
    Row("imad_hi", U, "mad.hi.u32 %0, %0, %1, %2;", ("IMAD",), "imad_hi"),
    Row("mufu_ex2", F, "ex2.approx.ftz.f32 %0, %0;", ("MUFU",), "mufu"),
    Row(
        "mufu_rcp", F, "rcp.approx.ftz.f32 %0, %0; add.rn.f32 %0, %0, %1;", ("MUFU", "FADD"), "mufu"
    ),
    Row("mufu_rsq", F, "rsqrt.approx.ftz.f32 %0, %0;", ("MUFU",), "mufu"),
    Row("mufu_lg2", F, "lg2.approx.ftz.f32 %0, %0;", ("MUFU",), "mufu"),
    Row("mufu_tanh", F, "tanh.approx.f32 %0, %0;", ("MUFU",), "mufu"),
    Row("mufu_ex2_scaled", F, "ex2.approx.f32 %0, %0;", ("MUFU", "FMUL", "FSETP"), "mufu"),
    Row(
        "f2fp_f16",
        F,
        "{.reg .b16 h; cvt.rn.f16.f32 h, %0; cvt.f32.f16 %0, h;}",
        ("F2FP", "HADD2"),
        "f2fp",
    ),
    Row(
        "f2fp_bf16",
        U,
        "{.reg .b16 h; .reg .f32 f; mov.b32 f, %0; cvt.rn.bf16.f32 h, f; mov.b32 %0, {h, h};}",
        ("F2FP",),
        "f2fp",
    ),
    Row(
        "f2fp_bf16x2",
        U,
        "{.reg .f32 f, g; mov.b32 f, %0; mov.b32 g, %1; cvt.rn.bf16x2.f32 %0, f, g;}",
        ("F2FP",),
        "f2fp",
    ),
    Row("f2f_64", F, "{.reg .f64 d; cvt.f64.f32 d, %0; cvt.rn.f32.f64 %0, d;}", ("F2F",), "f2f_64"),
    Row("i2fp", U, "{.reg .f32 f; cvt.rn.f32.u32 f, %0; mov.b32 %0, f;}", ("I2FP",), "i2fp"),
    Row(
        "i2f_f2i_64",
        L,
        "{.reg .f32 f; cvt.rn.f32.u64 f, %0; cvt.rzi.u64.f32 %0, f;}",
        ("I2F", "F2I"),
        "i2f_64",
    ),
    Row("f2i", U, "{.reg .f32 f; mov.b32 f, %0; cvt.rzi.s32.f32 %0, f;}", ("F2I",), "f2i"),
    Row("frnd", F, "cvt.rni.f32.f32 %0, %0;", ("FRND",), "frnd"),
    Row("dadd", D, "add.rn.f64 %0, %0, %1;", ("DADD",), "dadd"),
    Row("dfma", D, "fma.rn.f64 %0, %0, %1, %2;", ("DFMA",), "dfma"),
    Row("hfma2", U, "fma.rn.f16x2 %0, %0, %1, %2;", ("HFMA2",), "hfma2"),
    Row("hfma2_bf16", U, "fma.rn.bf16x2 %0, %0, %1, %2;", ("HFMA2",), "hfma2"),
    Row("hadd2", U, "add.rn.f16x2 %0, %0, %1;", ("HADD2",), "hadd2"),
    Row("hadd2_bf16", U, "add.rn.bf16x2 %0, %0, %1;", ("HADD2",), "hadd2", arch=90),
    Row(
        "fsetp_sel",
        F,
        "{.reg .pred p; setp.lt.f32 p, %0, %1; selp.f32 %0, %1, %2, p;}",
        ("FSETP", "FSEL"),
        "fsetp",
    ),
    Row(
        "isetp_sel",
        U,
        "{.reg .pred p; setp.lt.u32 p, %0, %1; selp.b32 %0, %1, %2, p;}",
        ("ISETP", "SEL"),
        "isetp",
    ),
    Row(
        "sel",
        U,
        "{.reg .pred p; setp.lt.u32 p, %1, %2; selp.b32 %0, %0, %1, p;}",
        ("SEL",),
        "sel",
    ),
    Row("fmnmx", F, "{min.f32 %0, %0, %1; max.f32 %0, %0, %2;}", ("FMNMX", "FMNMX"), "fmnmx"),
    Row("vimnmx", U, "{min.s32 %0, %0, %1; max.s32 %0, %0, %2;}", ("VIMNMX", "VIMNMX"), "vimnmx"),
    Row("prmt", U, "prmt.b32 %0, %0, %1, %2;", ("PRMT",), "prmt"),
    Row("popc", U, "popc.b32 %0, %0;", ("POPC",), "popc"),
    Row("flo", U, "bfind.u32 %0, %0;", ("FLO",), "flo"),
    Row("brev", U, "brev.b32 %0, %0;", ("BREV",), "brev"),
    Row("idp", U, "dp4a.u32.u32 %0, %0, %1, %2;", ("IDP",), "idp"),
    Row("shfl", U, "shfl.sync.bfly.b32 %0, %0, 1, 31, -1;", ("SHFL",), "shfl", 4),
    Row(
        "vote",
        U,
        "{.reg .pred p; setp.lt.u32 p, %0, %1; vote.sync.ballot.b32 %0, p, -1;}",
        ("VOTE", "ISETP"),
        "vote",
    ),
    Row("match", U, "match.any.sync.b32 %0, %0, -1;", ("MATCH",), "match", 4),
    Row("redux", U, "redux.sync.add.u32 %0, %0, -1;", ("REDUX",), "redux"),
    Row("lds", SHARED, "ld.shared.u32 %0, [%0];", ("LDS",), "lds", 4),
    Row(
        "lds_128",
        SHARED,
        "{.reg .u32 s, t, u, v; ld.volatile.shared.v4.u32 {s, t, u, v}, [%0]; "
        "xor.b32 t, s, t; xor.b32 t, t, u; xor.b32 %0, t, v;}",
        ("LDS", "LOP3"),
        "lds",
        16,
    ),
    Row(
        "sts_128", SHARED, "st.volatile.shared.v4.u32 [%0], {%1, %1, %2, %2};", ("STS",), "sts", 16
    ),
    Row("atoms", SHARED, "atom.shared.add.u32 %0, [%0], %1;", ("ATOMS",), "atoms", 4),
    Row("ldc", U, None, ("LDC",), "ldc", 4),
    Row("bar", U, "bar.sync 0;", ("BAR",), "bar"),
]

TEXT = """
typedef {type} T;
__constant__ unsigned zeros[16];
extern "C" __global__ void __launch_bounds__(1024)
    chain(long long* out, T* sink, long long rounds, T a, T b) {{
  __shared__ alignas(16) unsigned data[4096];
  for (unsigned i = threadIdx.x; i < 4096; i += blockDim.x)
    data[i] = {own_address};
  T x[{chains}];
  for (int c = 0; c < {chains}; ++c) x[c] = {start};
  __syncthreads();
  long long before, after;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(before) :: "memory");
#pragma unroll 1
  for (long long i = 0; i < rounds; ++i) {{
#pragma unroll
    for (int u = 0; u < {unroll}; ++u) {{
#pragma unroll
      for (int c = 0; c < {chains}; ++c) {statement}
    }}
  }}
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(after) :: "memory");
  T all = x[0];
  for (int c = 1; c < {chains}; ++c) all += x[c];
  sink[blockIdx.x * blockDim.x + threadIdx.x] = all;
  if (threadIdx.x % 32 == 0) {{
    out[threadIdx.x / 32 * 2] = before;
    out[threadIdx.x / 32 * 2 + 1] = after;
  }}
}}
"""


def kernel_text(row, chains):
    """A kernel "chain" that repeats the row's statement UNROLL times a round, over all chains."""
    is_shared = row.of == SHARED
    of = U if is_shared else row.of
    letter = TYPES[of]
    statement = (
        "x[c] = *reinterpret_cast<const unsigned*>(reinterpret_cast<const char*>(zeros) + x[c]);"
        if row.ptx is None
        else f'asm volatile("{row.ptx}" : "+{letter}"(x[c]) : "{letter}"(a), "{letter}"(b));'
    )
    here = "static_cast<unsigned>(__cvta_generic_to_shared(data))"
    wide = row.lane_bytes if is_shared else 0
    # Of four words that are combined by xor, one is the address and the others are zero.
    own = "0u"
    if is_shared:
        own = f"{here} + i * 4" if wide == 4 else f"i % 4 == 0 ? {here} + i * 4 : 0u"
    start = "a + T(threadIdx.x + c)"
    if is_shared:
        start = f"{here} + threadIdx.x * {wide} % 16384"
    if row.ptx is None:
        start = "sink[threadIdx.x] * 0"
    return TEXT.format(
        type=of,
        own_address=own,
        chains=chains,
        start=start,
        unroll=UNROLL // chains,
        statement=statement,
    )


def loop_opcodes(disassembly):
    """How often each opcode stands in the longest loop: {opcode: count}."""
    lines = re.findall(r"^([0-9a-f]{4}) (?:@!?U?P\d )?(\S+)(.*)", disassembly, re.M)
    body = []
    for place, opcode, rest in lines:
        back = re.search(r"`\(0x([0-9a-f]+)\)", rest)
        if opcode == "BRA" and back and int(back[1], 16) < int(place, 16):
            inside = [
                op for at, op, _ in lines if int(back[1], 16) <= int(at, 16) <= int(place, 16)
            ]
            body = max(body, inside, key=len)
    return {opcode: body.count(opcode) for opcode in sorted(set(body))}
