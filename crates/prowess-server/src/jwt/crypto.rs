//! Checks signatures with ring, which is in the program anyway. Nothing is signed here.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, new_error};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: no_signer,
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has tokens checked with ring, unless whoever runs us has chosen something else.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

fn no_signer(_: &Algorithm, _: &EncodingKey) -> Result<Box<dyn JwtSigner>, Error> {
    Err(new_error(ErrorKind::UnsupportedAlgorithm))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    if algorithm.family() != key.family() || key.family() == AlgorithmFamily::Hmac {
        return Err(new_error(ErrorKind::InvalidAlgorithm));
    }
    Ok(Box::new(RingVerifier { algorithm: *algorithm, key: key.clone() }))
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let is_good = match (self.key.kind(), rsa(self.algorithm), other(self.algorithm)) {
            (DecodingKeyKind::RsaModulusExponent { n, e }, Some(parameters), _) => {
                let key = RsaPublicKeyComponents { n: significant(n), e: significant(e) };
                key.verify(parameters, message, signature).is_ok()
            }
            (DecodingKeyKind::SecretOrDer(key), _, Some(algorithm)) => {
                UnparsedPublicKey::new(algorithm, key).verify(message, signature).is_ok()
            }
            _ => false,
        };
        if is_good { Ok(()) } else { Err(SignatureError::new()) }
    }
}

fn rsa(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    match algorithm {
        Algorithm::RS256 => Some(&RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Some(&RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Some(&RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Some(&RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Some(&RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Some(&RSA_PSS_2048_8192_SHA512),
        _ => None,
    }
}

fn other(algorithm: Algorithm) -> Option<&'static dyn VerificationAlgorithm> {
    match algorithm {
        Algorithm::ES256 => Some(&ECDSA_P256_SHA256_FIXED),
        Algorithm::ES384 => Some(&ECDSA_P384_SHA384_FIXED),
        Algorithm::EdDSA => Some(&ED25519),
        _ => None,
    }
}

/// A number without the zeros that some providers write before it.
fn significant(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
