# What `cmake --install` lays out, so that find_package(kiln) works.

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)

get_property(stages GLOBAL PROPERTY KILN_STAGES)
list(TRANSFORM stages PREPEND kiln_ OUTPUT_VARIABLE stage_targets)
install(TARGETS kiln ${stage_targets} EXPORT kilnTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION ${package_dir})
install(CODE "set(SOURCE \"${PROJECT_SOURCE_DIR}\")
set(INCLUDE_DIR \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT cmake/KilnInstallHeaders.cmake)
install(FILES ${KILN_WGPU_LIBRARY} DESTINATION ${CMAKE_INSTALL_LIBDIR})

configure_package_config_file(cmake/kilnConfig.cmake.in ${PROJECT_BINARY_DIR}/kilnConfig.cmake
  INSTALL_DESTINATION ${package_dir} PATH_VARS CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/kilnConfig.cmake ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake
  cmake/FindoneDNN.cmake cmake/KilnEmbed.cmake cmake/KilnEmbedFile.cmake cmake/KilnEmbedSpirv.cmake
  DESTINATION ${package_dir})
