# A wheel is built from its own copy of the sources, with the compiler flags of the release tree. Where UM_OBJECT_CACHE
# names a folder, which the Makefile does, and ccache is installed, what both contain is compiled once. An object is taken
# from there only where the compiler, its flags, the source and every header are the same. Paths are compared relative to
# the source folder, as seen from a build tree in it. A launcher that somebody has set (CMAKE_C_COMPILER_LAUNCHER) stays.
function(um_share_objects)
  if(UM_LAUNCHER)
    set_target_properties(${ARGN} PROPERTIES C_COMPILER_LAUNCHER "${UM_LAUNCHER}")
  endif()
endfunction()

if(NOT UM_OBJECT_CACHE OR UM_SANITIZE OR CMAKE_C_COMPILER_LAUNCHER)
  return()
endif()
find_program(UM_CCACHE ccache)
find_program(UM_ENV env)
if(NOT UM_CCACHE OR NOT UM_ENV)
  return()
endif()
set(UM_LAUNCHER
  "${UM_ENV};CCACHE_DIR=${UM_OBJECT_CACHE};CCACHE_BASEDIR=${CMAKE_SOURCE_DIR};CCACHE_NOHASHDIR=1;CCACHE_DEPEND=1;CCACHE_NOCOMPRESS=1;CCACHE_MAXSIZE=400M;${UM_CCACHE}")
um_share_objects(um_objects ${UM_PROGRAMS})
if(TARGET um_example_parts)
  um_share_objects(um_example_parts)
endif()
