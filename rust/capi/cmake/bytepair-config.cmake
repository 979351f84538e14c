# find_package(bytepair) gives the targets bytepair::shared and bytepair::static.
include(CMakeFindDependencyMacro)
find_dependency(Threads)

get_filename_component(_bytepair_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET bytepair::shared)
  add_library(bytepair::shared SHARED IMPORTED)
  set_target_properties(bytepair::shared PROPERTIES
    IMPORTED_LOCATION "${_bytepair_prefix}/lib/libbytepair${CMAKE_SHARED_LIBRARY_SUFFIX}"
    INTERFACE_INCLUDE_DIRECTORIES "${_bytepair_prefix}/include")

  add_library(bytepair::static STATIC IMPORTED)
  set_target_properties(bytepair::static PROPERTIES
    IMPORTED_LOCATION "${_bytepair_prefix}/lib/libbytepair${CMAKE_STATIC_LIBRARY_SUFFIX}"
    INTERFACE_INCLUDE_DIRECTORIES "${_bytepair_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
endif()

unset(_bytepair_prefix)
