// The files of the page, as daemon/page/web builds them; they are compiled into the program.
#pragma once

#include <string_view>

namespace percs {

struct PageFile {
  std::string_view path;  // "/page.js"
  std::string_view type;
  std::string_view text;
};
// Null: there is none at this path.
const PageFile* FindPageFile(std::string_view path);

}  // namespace percs
