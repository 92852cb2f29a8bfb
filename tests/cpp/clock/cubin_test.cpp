// What is no cubin, or a damaged one, is refused by name; what NVRTC makes is read.
#include "clock/sass/cubin.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "clock/sass/program.h"
#include "jit/nvrtc_directories.h"

namespace stitch::clock {
namespace {

constexpr const char* kText = R"(
extern "C" __global__ void __launch_bounds__(96) add(float* y, const float* x, int n, double s) {
  __shared__ float kept[100];
  int i = blockIdx.x * 96 + threadIdx.x;
  kept[threadIdx.x] = x[i];
  __syncthreads();
  if (i < n) y[i] = kept[95 - threadIdx.x] + s;
}
extern "C" __global__ void nothing() {}
)";

std::string compile(const std::string& arch) { return run_nvrtc("add", kText, arch).bytes; }

template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.what();
  }
  return "none";
}

TEST(Cubin, SaysWhatAKernelIs) {
  STITCH_SKIP_WITHOUT_NVRTC();
  for (const auto& [arch, number] : {std::pair{"sm_80", 80}, {"sm_90a", 90}, {"sm_100a", 100}}) {
    const Cubin cubin = read_cubin(compile(arch));
    EXPECT_EQ(cubin.architecture, number);
    EXPECT_EQ(cubin.kernels.size(), 2u);
    const CubinKernel& kernel = find_kernel(cubin, "add");
    EXPECT_GT(kernel.registers, 4);
    EXPECT_GE(kernel.shared_bytes, 400);
    EXPECT_EQ(kernel.local_bytes, 0);
    EXPECT_EQ(kernel.max_threads[0], 96u);
    ASSERT_EQ(kernel.parameters.size(), 4u);
    EXPECT_EQ(kernel.parameters[2].offset, 16u);
    EXPECT_EQ(kernel.parameters[2].bytes, 4u);
    EXPECT_EQ(kernel.parameters[3].offset, 24u);
    EXPECT_EQ(decode(cubin, kernel).unknown, std::vector<std::string>());
  }
}

TEST(Cubin, NamesTheKernelsItHas) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const Cubin cubin = read_cubin(compile("sm_90a"));
  const std::string message = error_of([&] { find_kernel(cubin, "sub"); });
  EXPECT_NE(message.find("no kernel 'sub'; it has "), std::string::npos) << message;
  EXPECT_NE(message.find("add"), std::string::npos) << message;
}

// Whatever byte a file ends at, and whatever byte is damaged: an error of the user's, or a result.
TEST(Cubin, OfAnyLengthOrDamageEndsInAnErrorThatSaysSo) {
  STITCH_SKIP_WITHOUT_NVRTC();
  const std::string whole = compile("sm_90a");
  const auto read = [](const std::string& bytes) {
    const Cubin cubin = read_cubin(bytes);
    for (const CubinKernel& kernel : cubin.kernels) decode(cubin, kernel);
  };
  for (size_t bytes = 0; bytes < 64; ++bytes)
    EXPECT_NE(error_of([&] { read(whole.substr(0, bytes)); }).find("fewer than the header"),
              std::string::npos);
  for (size_t bytes = 64; bytes < whole.size(); bytes += 7)
    EXPECT_NE(error_of([&] { read(whole.substr(0, bytes)); }).find("damaged"), std::string::npos);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xff);
    error_of([&] { read(damaged); });
  }
}

TEST(Cubin, RefusesOtherFilesAndOlderArchitectures) {
  EXPECT_NE(error_of([] { read_cubin(std::string(200, 'x')); }).find("is no cubin"),
            std::string::npos);
  STITCH_SKIP_WITHOUT_NVRTC();
  std::string bytes = compile("sm_90a");
  bytes[0x31] = 75;  // the architecture in the flags of the header
  EXPECT_NE(error_of([&] { read_cubin(bytes); }).find("for sm_75; sm_80 and later"),
            std::string::npos);
}

// Words of cubins for sm_90a, each as the vendor's disassembler prints it, modifiers left out.
struct Printed {
  uint64_t low, high;
  const char* text;
};
constexpr Printed kPrinted[] = {
    {0x00000a00ff017b82, 0x000fe20000000800, "LDC R1, c[0x0][0x28]"},
    {0x0000000404047981, 0x000ee2000c1e1900, "LDG PT, R4, desc[UR4][R4.64]"},
    {0x0000080403007988, 0x0003e80008000a04, "STS [R3+UR4+0x8], R4"},
    {0x00001005ff047984, 0x000ea80008000c00, "LDS R4, [UR5+0x10]"},
    {0x0c0240041aff8dae, 0x0003e2000a121846, "@!P0 LDGSTS [UR6+0xc024], desc[UR7][R26.64+0x4], P4"},
    {0x0000000005057c11, 0x000fcc00080f1406, "LEA R5, PT, R5, UR0, R6, 0x2, P0"},
    {0x8000000106007810, 0x001fc80007ffe1ff, "IADD3 R0, PT, PT, -R6, 0x80000001, RZ, !PT, !PT"},
    {0x0000001fff097819, 0x000fc80000011609, "SHF R9, RZ, 0x1f, R9"},
    {0x0000000000ff731c, 0x000e620000004000, "B2R RZ, P0"},
    {0x0000000000007b1d, 0x000fec0000014800, "BAR 0x0, P0"},
    {0x00000007040479a8, 0x002ea800081ee1c4, "ATOMG PT, R4, desc[UR4][R4.64], R7"},
    {0x00000000000889c3, 0x000e220000008800, "@!UP0 S2UR UR8, SR_CgaCtaId"},
    {0x00000000003f3886, 0x000fe40000020000, "@P3 VOTEU UP1, P0"},
    {0xb96000000d027446, 0x0c0fe40007800914, "VIADDMNMX R2, R13, -R20, 0xb9600000, !PT"},
    {0x0008001402007388, 0x0041e2000000cc00,
     "STS [R2.X16+0x800], R20"},  // this and the next: sm_80
    {0x00000000060473c2, 0x004e3000000e0000, "R2UR UR4, R6"},
};

TEST(Decode, PrintsOperandsAsTheVendorDoes) {
  Cubin cubin;
  cubin.architecture = 90;
  CubinKernel kernel;
  for (const Printed& printed : kPrinted) {
    kernel.code.append(reinterpret_cast<const char*>(&printed.low), 8);
    kernel.code.append(reinterpret_cast<const char*>(&printed.high), 8);
  }
  const Program program = decode(cubin, kernel);
  for (size_t i = 0; i < std::size(kPrinted); ++i)
    EXPECT_EQ(print_instruction(program, i), kPrinted[i].text);
  EXPECT_EQ(program.code[1].control.stall_cycles, 1);
  EXPECT_EQ(program.code[1].control.write_scoreboard, 3);
  EXPECT_EQ(program.code[6].control.wait_mask, 1);
}

TEST(Decode, NamesAnOpcodeThatItDoesNotKnow) {
  Cubin cubin;
  cubin.architecture = 90;
  CubinKernel kernel;
  kernel.code = std::string(16, '\xfe');
  const Program program = decode(cubin, kernel);
  EXPECT_EQ(program.unknown, std::vector<std::string>{"0xefe at 0x0"});
}

}  // namespace
}  // namespace stitch::clock
