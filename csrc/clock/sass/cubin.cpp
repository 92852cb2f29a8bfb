#include "clock/sass/cubin.h"

#include <cstring>
#include <map>
#include <type_traits>

#include "base/error.h"
#include "base/words.h"

namespace stitch::clock {

namespace {

// Attributes of .nv.info, as cuobjdump names them.
enum Attribute : uint8_t {
  kMaxThreads = 0x05,
  kParameterBank = 0x0a,
  kFrameSize = 0x11,
  kParameter = 0x17,
  kRegisterCount = 0x2f,
  kLargeParameter = 0x45,
};
constexpr uint8_t kSizedAttribute = 4;  // others carry their two bytes in place
constexpr uint16_t kCudaMachine = 190;
constexpr uint32_t kNoBits = 8;
constexpr std::string_view kText = ".text.", kInfo = ".nv.info", kShared = ".nv.shared.";

// Reads within bounds, or names what is cut off.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  size_t size() const { return bytes_.size(); }
  std::string_view slice(uint64_t at, uint64_t size, const std::string& what) const {
    if (at > bytes_.size() || size > bytes_.size() - at)
      throw UserError("the cubin is damaged: " + what + " is at byte " + std::to_string(at) + ", " +
                      std::to_string(size) + " bytes long, and the file has " +
                      std::to_string(bytes_.size()) + "; make it again");
    return bytes_.substr(at, size);
  }
  template <class T>
  T read(uint64_t at, const std::string& what) const {
    static_assert(std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, slice(at, sizeof(T), what).data(), sizeof(T));
    return value;
  }
  std::string text(uint64_t at, const std::string& what) const {
    const std::string_view rest = slice(at, at <= size() ? size() - at : 1, what);
    return std::string(rest.substr(0, rest.find('\0')));
  }

 private:
  std::string_view bytes_;
};

struct Section {  // Elf64_Shdr
  uint32_t name, type;
  uint64_t flags, address, offset, bytes;
  uint32_t link, info;
  uint64_t alignment, entry_bytes;
};
struct Header {  // Elf64_Ehdr
  uint8_t ident[16];
  uint16_t type, machine;
  uint32_t version;
  uint64_t entry, segments_at, sections_at;
  uint32_t flags;
  uint16_t header_bytes, segment_bytes, segments, section_bytes, sections, names;
};
struct Symbol {  // Elf64_Sym
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, bytes;
};
static_assert(sizeof(Section) == 64 && sizeof(Header) == 64 && sizeof(Symbol) == 24);

using Sections = std::vector<std::pair<std::string, Section>>;

Header read_header(const Reader& file) {
  constexpr uint8_t magic[] = {0x7f, 'E', 'L', 'F', 2, 1};  // 64 bits, little endian
  if (file.size() < sizeof(Header))
    throw UserError("found " + std::to_string(file.size()) +
                    " bytes, fewer than the header of a cubin; give a cubin of NVRTC or ptxas");
  const auto header = file.read<Header>(0, "the ELF header");
  if (std::memcmp(header.ident, magic, sizeof(magic)) != 0 || header.machine != kCudaMachine)
    throw UserError("the file is no cubin (an ELF file of machine 190); give one, or CUDA text");
  return header;
}

int architecture_of(const Header& header) {
  constexpr uint8_t abi_at = 8, shifted_since = 8;
  const int shift = header.ident[abi_at] >= shifted_since ? 8 : 0;
  const int architecture = header.flags >> shift & 0xff;
  if (architecture >= 80) return architecture;
  throw UserError("the cubin is for sm_" + std::to_string(architecture) +
                  "; sm_80 and later are understood: compile it for one");
}

Sections read_sections(const Reader& file, const Header& header) {
  Sections sections;
  const auto read = [&](size_t i) {
    return file.read<Section>(header.sections_at + i * sizeof(Section), "a section header");
  };
  if (header.section_bytes != sizeof(Section) || header.names >= header.sections)
    throw UserError(
        "the cubin is damaged: its section headers are of no known form; make it again");
  const Section names = read(header.names);
  const Reader strings(file.slice(names.offset, names.bytes, "the table of section names"));
  for (size_t i = 0; i < header.sections; ++i) {
    const Section section = read(i);
    sections.emplace_back(strings.text(section.name, "a section's name"), section);
  }
  return sections;
}

std::string_view contents(const Reader& file, const Section& section, const std::string& name) {
  if (section.type == kNoBits) return {};
  return file.slice(section.offset, section.bytes, "section " + name);
}

template <class Take>
void for_each_attribute(const Reader& info, const std::string& what, Take take) {
  for (uint64_t at = 0; at + 4 <= info.size();) {
    const auto format = info.read<uint8_t>(at, what), attribute = info.read<uint8_t>(at + 1, what);
    const auto size = info.read<uint16_t>(at + 2, what);
    at += 4;
    if (format != kSizedAttribute) continue;
    take(attribute, Reader(info.slice(at, size, what)));
    at += size;
  }
}

// What .nv.info of one kernel says.
void read_info(const Reader& info, CubinKernel& kernel) {
  const std::string what = "an attribute of kernel " + kernel.name;
  std::map<uint16_t, KernelParameter> parameters;
  for_each_attribute(info, what, [&](uint8_t attribute, const Reader& value) {
    if (attribute == kParameterBank) kernel.parameters_at = value.read<uint16_t>(4, what);
    if (attribute == kMaxThreads) kernel.max_threads = value.read<std::array<uint32_t, 3>>(0, what);
    if (attribute != kParameter && attribute != kLargeParameter) return;
    const int size_shift = attribute == kParameter ? 18 : 0;
    parameters[value.read<uint16_t>(4, what)] = {value.read<uint16_t>(6, what),
                                                 value.read<uint32_t>(8, what) >> size_shift};
  });
  for (const auto& [ordinal, parameter] : parameters) kernel.parameters.push_back(parameter);
}

// What .nv.info of the whole file says, by symbol.
void read_file_info(const Reader& info, const Reader& symbols, const Reader& strings,
                    std::vector<CubinKernel>& kernels) {
  const std::string what = "an attribute of the file";
  for_each_attribute(info, what, [&](uint8_t attribute, const Reader& value) {
    if (attribute != kRegisterCount && attribute != kFrameSize) return;
    const auto symbol =
        symbols.read<Symbol>(uint64_t{value.read<uint32_t>(0, what)} * sizeof(Symbol), "a symbol");
    const std::string name = strings.text(symbol.name, "a symbol's name");
    const auto number = value.read<uint32_t>(4, what);
    for (CubinKernel& kernel : kernels) {
      if (kernel.name != name) continue;
      if (attribute == kRegisterCount) kernel.registers = static_cast<int>(number);
      if (attribute == kFrameSize) kernel.local_bytes = number;
    }
  });
}

}  // namespace

Cubin read_cubin(std::string_view bytes) {
  const Reader file(bytes);
  const Header header = read_header(file);
  Cubin cubin;
  cubin.architecture = architecture_of(header);
  file.slice(header.segments_at, uint64_t{header.segment_bytes} * header.segments, "its end");
  const Sections sections = read_sections(file, header);
  std::map<std::string, Section> by_name(sections.begin(), sections.end());
  const auto read = [&](const std::string& name) {
    const auto found = by_name.find(name);
    return Reader(found == by_name.end() ? std::string_view()
                                         : contents(file, found->second, name));
  };
  for (const auto& [name, section] : sections) {
    cubin.is_debug |= name == ".debug_info";
    if (!name.starts_with(kText) ||
        !by_name.contains(std::string(kInfo) + "." + name.substr(kText.size())))
      continue;
    CubinKernel kernel;
    kernel.name = name.substr(kText.size());
    kernel.code = contents(file, section, name);
    read_info(read(std::string(kInfo) + "." + kernel.name), kernel);
    const auto shared = by_name.find(std::string(kShared) + kernel.name);
    if (shared != by_name.end()) kernel.shared_bytes = shared->second.bytes;
    cubin.kernels.push_back(std::move(kernel));
  }
  read_file_info(read(std::string(kInfo)), read(".symtab"), read(".strtab"), cubin.kernels);
  return cubin;
}

const CubinKernel& find_kernel(const Cubin& cubin, const std::string& name) {
  if (name.empty() && cubin.kernels.size() == 1) return cubin.kernels[0];
  const std::string mangled = "_Z" + std::to_string(name.size()) + name;
  const auto found = std::ranges::find_if(cubin.kernels, [&](const CubinKernel& kernel) {
    return kernel.name == name || kernel.name.starts_with(mangled);
  });
  if (found != cubin.kernels.end()) return *found;
  throw UserError("the cubin has no kernel '" + name + "'; it has " +
                  (cubin.kernels.empty() ? "none" : join(cubin.kernels, ", ", &CubinKernel::name)));
}

}  // namespace stitch::clock
