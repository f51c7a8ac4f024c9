# The Python wheel, included only when scikit-build-core drives the build (SKBUILD). Everything it carries is installed
# in the component `python`, relative to the package um_cffi: binding/_native.abi3.so, lib/, include/lbm/, bin/.
# The library goes in under its SONAME alone, because a wheel cannot hold symbolic links; programs and the module find it
# by a path relative to themselves.
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)

set_target_properties(um PROPERTIES VERSION 0 INSTALL_RPATH "$ORIGIN")

file(GLOB UM_BINDING_C CONFIGURE_DEPENDS um_cffi/binding/um_py_*.c)
set(UM_NATIVE_C ${CMAKE_BINARY_DIR}/python/_native.c)
add_custom_command(OUTPUT ${UM_NATIVE_C}
  COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/um_cffi/binding/build.py --build ${CMAKE_BINARY_DIR}
          --emit ${UM_NATIVE_C}
  DEPENDS um_cffi/binding/build.py ${UM_BINDING_C} ${UM_PUBLIC_HEADERS}
  COMMENT "Generating the cffi module"
  VERBATIM)

add_library(um_native MODULE ${UM_NATIVE_C})
target_link_libraries(um_native PRIVATE um Python::Module Threads::Threads)
target_compile_definitions(um_native PRIVATE Py_LIMITED_API=0x03090000)
target_compile_options(um_native PRIVATE -Wno-unused-function -Wno-missing-field-initializers)
set_target_properties(um_native PROPERTIES PREFIX "" OUTPUT_NAME _native SUFFIX .abi3.so C_VISIBILITY_PRESET default
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/python INSTALL_RPATH "$ORIGIN/../lib")
um_share_objects(um_native) # with the wheel that was built before: its optimization takes as long as all the rest

install(TARGETS um_native LIBRARY DESTINATION binding COMPONENT python)
install(TARGETS um LIBRARY DESTINATION lib NAMELINK_SKIP COMPONENT python)
install(FILES ${UM_PUBLIC_HEADERS} DESTINATION include/lbm COMPONENT python)
install(FILES ${UM_PROTO_HEADERS} DESTINATION include/lbm/gen COMPONENT python)
install(FILES ${UM_PROTOS} DESTINATION share/proto COMPONENT python)

foreach(program ${UM_PROGRAMS})
  set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS ${program} RUNTIME DESTINATION bin COMPONENT python)
endforeach()

install(DIRECTORY ${CMAKE_BINARY_DIR}/systemd/ DESTINATION share/systemd COMPONENT python)
install(FILES packaging/sysusers/libum.conf DESTINATION share/sysusers COMPONENT python)
install(FILES packaging/prometheus/um-alerts.yml DESTINATION share/prometheus COMPONENT python)
install(FILES packaging/grafana/um-fleet.json DESTINATION share/grafana COMPONENT python)

# Beside the commands: `man um` finds them in an environment that is active. The wheel's data folder is its prefix.
install(DIRECTORY packaging/man/ DESTINATION ${SKBUILD_DATA_DIR}/share/man COMPONENT python FILES_MATCHING PATTERN "*.1")
if(TARGET um_man)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/man/man1 ${CMAKE_BINARY_DIR}/man/man8 DESTINATION ${SKBUILD_DATA_DIR}/share/man
    COMPONENT python)
endif()

# A wheel cannot hold the link libum.so, so um.pc names the file itself; what that needs is in the wheel, too.
file(READ ${CMAKE_BINARY_DIR}/um.pc UM_PC)
string(REPLACE "-lum" "-l:libum.so.0" UM_PC "${UM_PC}")
string(REGEX REPLACE "Requires.private:[^\n]*\n" "" UM_PC "${UM_PC}")
file(WRITE ${CMAKE_BINARY_DIR}/python/um.pc "${UM_PC}")
install(FILES ${CMAKE_BINARY_DIR}/python/um.pc DESTINATION lib/pkgconfig COMPONENT python)
