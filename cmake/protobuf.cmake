# The messages of monitoring, proto/*.proto: C code for the library, headers for the programs that include lbmmon.h, as
# <lbm/gen/NAME.pb-c.h>. Made when CMake runs and copied where they differ, so that they are there before any compiler is.
# Their functions leave the library: programs that are handed such messages pack, unpack and free them with these.
file(GLOB UM_PROTOS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/proto/*.proto)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${UM_PROTOS})
set(made ${CMAKE_BINARY_DIR}/proto)
file(MAKE_DIRECTORY ${made})
execute_process(COMMAND ${UM_PROTOC_C} --proto_path=${CMAKE_SOURCE_DIR}/proto --c_out=${made} ${UM_PROTOS}
  COMMAND_ERROR_IS_FATAL ANY)
foreach(proto ${UM_PROTOS})
  get_filename_component(name ${proto} NAME_WE)
  foreach(suffix c h)
    configure_file(${made}/${name}.pb-c.${suffix} ${CMAKE_BINARY_DIR}/include/lbm/gen/${name}.pb-c.${suffix} COPYONLY)
  endforeach()
  list(APPEND UM_PROTO_C ${CMAKE_BINARY_DIR}/include/lbm/gen/${name}.pb-c.c)
  list(APPEND UM_PROTO_HEADERS ${CMAKE_BINARY_DIR}/include/lbm/gen/${name}.pb-c.h)
endforeach()
# The assertions in them name their file: not by the folder in which somebody has built.
set_source_files_properties(${UM_PROTO_C} PROPERTIES
  COMPILE_OPTIONS "-fvisibility=default;-fmacro-prefix-map=${CMAKE_BINARY_DIR}/=")
