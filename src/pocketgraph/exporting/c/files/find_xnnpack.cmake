
# XNNPACK as of 2022 or 2024 (libxnnpack-dev of Debian 12 or 13); say -DCMAKE_PREFIX_PATH=… where it is elsewhere.
include(CheckCSourceCompiles)
find_path(XNNPACK_INCLUDE xnnpack.h REQUIRED)
find_library(XNNPACK_LIBRARY XNNPACK REQUIRED)
target_include_directories(@name@ PUBLIC ${XNNPACK_INCLUDE})
target_link_libraries(@name@ PUBLIC ${XNNPACK_LIBRARY})
foreach(part pthreadpool cpuinfo)
  find_library(${part}_LIBRARY ${part})
  if(${part}_LIBRARY)
    target_link_libraries(@name@ PUBLIC ${${part}_LIBRARY})
  endif()
endforeach()
set(CMAKE_REQUIRED_INCLUDES ${XNNPACK_INCLUDE})
check_c_source_compiles("#include <xnnpack.h>
  #ifdef XNN_FLAG_TRANSIENT_INDIRECTION_BUFFER
  int main(void) { return sizeof(xnn_reshape_convolution2d_nhwc_f32(0, 1, 1, 1, 0, 0, 0, 0, 0)) == 0; }
  #else
  int main(void) { return sizeof(xnn_setup_convolution2d_nhwc_f32(0, 1, 1, 1, 0, 0, 0)) == 0; }
  #endif" XNNPACK_FITS)
if(NOT XNNPACK_FITS)
  message(FATAL_ERROR "this XNNPACK has an interface of neither 2022 nor 2024; export without --backend=xnnpack")
endif()
