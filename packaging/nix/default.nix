# SPDX-License-Identifier: Apache-2.0
{
  lib,
  stdenv,
  fetchurl,
  cmake,
  pkg-config,
  inih,
  jansson,
  libevent,
  openssl,
}:

stdenv.mkDerivation (finalAttrs: {
  pname = "ctrun";
  version = "@VERSION@";

  src = fetchurl {
    url = "https://github.com/ctrun/libct/releases/download/v${finalAttrs.version}/ctrun-${finalAttrs.version}.tar.gz";
    sha256 = "@SHA256@";
  };

  nativeBuildInputs = [
    cmake
    pkg-config
  ];

  buildInputs = [
    inih
    libevent
  ];

  cmakeFlags = [
    (lib.cmakeBool "BUILD_TESTING" false)
    (lib.cmakeFeature "CT_CUDA" "off")
    (lib.cmakeFeature "CT_MPICC" "off")
  ];

  # They are opened when they are first needed.
  postFixup = ''
    patchelf --add-rpath ${
      lib.makeLibraryPath [
        jansson
        openssl
      ]
    } $out/bin/ctrun $out/bin/ctctl $out/lib/libct.so
  '';

  meta = {
    description = "Launcher like torchrun, and its process groups for C";
    homepage = "https://github.com/ctrun/libct";
    changelog = "https://github.com/ctrun/libct/releases/tag/v${finalAttrs.version}";
    license = lib.licenses.asl20;
    mainProgram = "ctrun";
    maintainers = [ ];
    platforms = [ "x86_64-linux" ];
  };
})
