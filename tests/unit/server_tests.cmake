set(here ${CMAKE_CURRENT_LIST_DIR})
kernelstream_test(store_contract_test
  SOURCES ${here}/store_contract_test.cc DEPS kernelstream_store LABELS unit)
kernelstream_test(store_rocksdb_test
  SOURCES ${here}/store_rocksdb_test.cc DEPS kernelstream_store RocksDB::rocksdb-shared LABELS unit)
kernelstream_test(store_golden_test
  SOURCES ${here}/store_golden_test.cc DEPS kernelstream_store absl::strings LABELS unit garbage)
kernelstream_test(telemetry_test
  SOURCES ${here}/telemetry_test.cc DEPS kernelstream_telemetry absl::strings LABELS unit)
foreach(part model registry parts)
  kernelstream_test(hosting_${part}_test
    SOURCES ${here}/hosting_${part}_test.cc DEPS kernelstream_hosting absl::strings
    LABELS unit concurrency)
endforeach()
